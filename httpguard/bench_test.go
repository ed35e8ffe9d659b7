package httpguard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

// What the middlewares cost a handler that answers at once, with stores and locks
// that cost nothing: what is left is theirs.
func BenchmarkMiddleware(b *testing.B) {
	body := `{"productId":1234567890123456789,"quantity":1,"addressVersion":"7","couponId":null,"note":"` + strings.Repeat("x", 400) + `"}`
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{})
	if err != nil {
		b.Fatal(err)
	}
	wrap, err := Idempotent(guard, IdempotentConfig{Principal: user})
	if err != nil {
		b.Fatal(err)
	}
	next := http.HandlerFunc(created)
	once := submitOnceOn(b, newMemoryLock(), SubmitConfig{}, next)
	for _, c := range []struct {
		name string
		h    http.Handler
		key  func(i int) string
	}{
		{"none", next, nil},
		{"submitonce", once, nil},
		{"idempotent/first", wrap(next), func(i int) string { return fmt.Sprint(i) }},
		{"idempotent/replay", wrap(next), func(int) string { return "same" }},
		{"idempotent/no key", wrap(next), nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := request("POST", "/orders", body)
				r.Header.Set("User", fmt.Sprint(i)) // as a guard is released beside its answer
				if c.key != nil {
					r.Header.Set("User", "u1")
					r.Header.Set("Idempotency-Key", c.key(i))
				}
				w := httptest.NewRecorder()
				c.h.ServeHTTP(w, r)
				if w.Code != http.StatusCreated {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}
