package fingerprint_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/quorumlock/quorumlock/fingerprint"
)

func Example() {
	scheme, err := fingerprint.New(fingerprint.Config{})
	if err != nil {
		log.Fatal(err)
	}
	first, err := scheme.JSON([]byte(`{"productId": 1234567890123456789, "quantity": 1}`))
	if err != nil {
		log.Fatal(err)
	}
	again, err := scheme.JSON([]byte(`{"quantity":1.0,"productId":1234567890123456789}`))
	if err != nil {
		log.Fatal(err)
	}
	another, err := scheme.JSON([]byte(`{"productId": 1234567890123456788, "quantity": 1}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first)
	fmt.Println("sent again:", first.Equal(again))
	fmt.Println("another product:", first.Equal(another))
	// Output:
	// v1:15ada0f065e56d4d83c190f36cda4a6bbc3b7788290229e06bd7f08cddfce946
	// sent again: true
	// another product: false
}

// What is no part of the intent, such as the time at which the client sent it,
// is left out by not naming it.
func ExampleScheme_Fields() {
	scheme, err := fingerprint.New(fingerprint.Config{Version: "orders-1"})
	if err != nil {
		log.Fatal(err)
	}
	var coupon *string // the request has none
	order := scheme.Fields().
		String("productId", "42").
		Int("quantity", 1).
		Decimal("maxPrice", "12.50").
		OptString("currency", nil, "EUR").
		String("addressVersion", "7")
	if coupon == nil {
		order.Null("couponId")
	} else {
		order.String("couponId", *coupon)
	}
	canonical, err := order.Canonical()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", canonical)
	print, err := order.Sum()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(print)
	// Output:
	// {"addressVersion":"7","couponId":null,"currency":"EUR","maxPrice":12.5,"productId":"42","quantity":1}
	// orders-1:816e241d088225dcec0449d09e8d3953f6292d65e5cf37ac1cc1a4ddaccb6c50
}

// The same body on another path is another request.
func ExampleScheme_Sum() {
	scheme, err := fingerprint.New(fingerprint.Config{})
	if err != nil {
		log.Fatal(err)
	}
	body, err := fingerprint.Canonical(nil, []byte(`{"amount": 5}`), fingerprint.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	pay := scheme.Sum([]byte("POST"), []byte("/orders/o1001/pay"), body)
	refund := scheme.Sum([]byte("POST"), []byte("/orders/o1001/refund"), body)
	fmt.Println(pay.Equal(refund))
	// Output:
	// false
}

// Since version 2 the address counts too. Records made before are compared by
// version 1, for as long as there are any.
func ExamplePrint_Version() {
	v1, err := fingerprint.New(fingerprint.Config{Version: "orders-1"})
	if err != nil {
		log.Fatal(err)
	}
	v2, err := fingerprint.New(fingerprint.Config{Version: "orders-2"})
	if err != nil {
		log.Fatal(err)
	}
	same := func(stored fingerprint.Print, product, address string) (bool, error) {
		var fields *fingerprint.Fields
		switch stored.Version() {
		case "orders-1":
			fields = v1.Fields().String("productId", product)
		case "orders-2":
			fields = v2.Fields().String("productId", product).String("addressVersion", address)
		default:
			return false, fmt.Errorf("no scheme for %q", stored.Version())
		}
		print, err := fields.Sum()
		return print.Equal(stored), err
	}
	old, err := v1.Fields().String("productId", "42").Sum()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(same(old, "42", "7"))
	fmt.Println(same(old, "43", "7"))
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleInputError() {
	_, err := fingerprint.Canonical(nil, []byte(`{"quantity": 1, "quantity": 100}`), fingerprint.Limits{})
	fmt.Println(err)
	var refused *fingerprint.InputError
	if errors.As(err, &refused) {
		fmt.Println("at byte", refused.Offset)
	}
	fmt.Println(errors.Is(err, fingerprint.ErrDuplicate))
	// Output:
	// offset 16: duplicate name: want each name of an object once
	// at byte 16
	// true
}
