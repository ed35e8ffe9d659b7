package idempotency_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

// What the guard itself costs, without a way to the store.
func BenchmarkDoInMemory(b *testing.B) {
	g := guard(b, memory(), idempotency.Config{})
	fn := func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		return idempotency.Result{Response: []byte("o1001")}, nil
	}
	b.ReportAllocs()
	for i := range b.N {
		r := asked
		r.Key.Value = fmt.Sprint(i)
		if _, _, err := g.Do(b.Context(), r, fn); err != nil {
			b.Fatal(err)
		}
	}
}
