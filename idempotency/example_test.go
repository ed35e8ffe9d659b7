package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

func Example() {
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{
		Reconciler: func(ctx context.Context, r idempotency.Record) (idempotency.Verdict, error) {
			// SELECT … FROM orders WHERE user_id = r.Key.Principal AND idempotency_key = r.Key.Value
			return idempotency.CannotTell("there is no table in this example"), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	scheme, err := fingerprint.New(fingerprint.Config{})
	if err != nil {
		log.Fatal(err)
	}
	order := func(key, body string) {
		print, err := scheme.JSON([]byte(body))
		if err != nil {
			log.Fatal(err)
		}
		result, info, err := guard.Do(context.Background(), idempotency.Request{
			Key:         idempotency.Key{Operation: "orders", Principal: "u1001", Value: key},
			Fingerprint: print,
		}, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
			fmt.Println("placing an order")
			return idempotency.Result{Response: []byte(`{"orderId":"o1001"}`)}, nil
		})
		switch {
		case errors.Is(err, idempotency.ErrMismatch):
			fmt.Println("that key is another order's")
		case errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrUnknown):
			fmt.Println("come back later")
		case err != nil:
			fmt.Println("it failed:", err)
		default:
			fmt.Printf("%s, replayed: %v\n", result.Response, info.Replayed)
		}
	}
	order("req-001", `{"productId": "42", "quantity": 1}`)
	order("req-001", `{"quantity": 1, "productId": "42"}`) // the same, in another order
	order("req-001", `{"productId": "42", "quantity": 2}`)
	// Output:
	// placing an order
	// {"orderId":"o1001"}, replayed: false
	// {"orderId":"o1001"}, replayed: true
	// that key is another order's
}

func ExampleNoEffect() {
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	pay := func(key string, err error) {
		request := idempotency.Request{
			Key:         idempotency.Key{Operation: "payments", Principal: "u1001", Value: key},
			Fingerprint: "v1:…",
		}
		for range 2 {
			_, _, got := guard.Do(context.Background(), request, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
				return idempotency.Result{}, err
			})
			var unknown *idempotency.UnknownError
			if errors.As(got, &unknown) {
				got = idempotency.ErrUnknown
			}
			fmt.Println(got)
		}
	}
	// Nothing has been sent yet: a retry may try again.
	pay("req-001", idempotency.NoEffect(errors.New("the card has expired")))
	// It has been sent, and may have been carried out: a retry must not.
	pay("req-002", errors.New("the gateway timed out"))
	// Output:
	// the card has expired
	// the card has expired
	// the gateway timed out
	// outcome of an earlier attempt unknown
}

// An operator looks through what is unknown, finds out, and says so.
func ExampleGuard_Resolve() {
	store := memstore.New(nil)
	guard, err := idempotency.New(store, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	request := idempotency.Request{
		Key:         idempotency.Key{Operation: "payments", Principal: "u1001", Value: "req-001"},
		Fingerprint: "v1:…",
	}
	pay := func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		return idempotency.Result{}, errors.New("the gateway timed out")
	}
	guard.Do(ctx, request, pay)

	for record, err := range store.List(ctx, idempotency.Filter{State: idempotency.StateUnknown}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Key, "is", record.State, "as", record.Reason)
		paid := idempotency.Happened(idempotency.Result{Response: []byte("receipt 77")})
		if err := guard.Resolve(ctx, record.Key, record.Attempt, paid); err != nil {
			log.Fatal(err)
		}
	}
	result, _, err := guard.Do(ctx, request, pay)
	fmt.Printf("%s %v\n", result.Response, err)
	// Output:
	// payments:u1001:req-001 is UNKNOWN as the run failed: the gateway timed out
	// receipt 77 <nil>
}
