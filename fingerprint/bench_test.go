package fingerprint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// sampleOrder is an order of some items, its names out of order.
func sampleOrder() []byte {
	items := make([]string, 6)
	for i := range items {
		items[i] = fmt.Sprintf(`{"sku": "sku-%06d", "quantity": %d, "price": {"currency": "EUR", "amount": %d.50}, "note": "caf\u00e9"}`, i, i+1, 10+i)
	}
	return []byte(`{"productId": 1234567890123456789, "items": [` + strings.Join(items, ", ") +
		`], "addressVersion": "7", "couponId": null, "gift": false}`)
}

func BenchmarkCanonical(b *testing.B) {
	worst := strings.Repeat(`{"b":0,"a":`, 64) + `"` + strings.Repeat("x", 1<<20-64*13) + `"` + strings.Repeat("}", 64)
	for _, c := range []struct {
		name string
		text []byte
	}{
		{"order", sampleOrder()},
		{"numbers", []byte("[" + strings.Repeat("1234567890123456789,-12.50,1e-9,", 1000) + "0]")},
		{"text", []byte(`"` + strings.Repeat("grün ", 10_000) + `"`)},
		{"worst", []byte(worst)}, // a megabyte that is copied at each level
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				var err error
				if dst, err = Canonical(dst[:0], c.text, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	text := sampleOrder()
	for name, key := range map[string][]byte{"plain": nil, "keyed": bytes.Repeat([]byte("k"), 32)} {
		scheme, err := New(Config{Key: key})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := scheme.JSON(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
