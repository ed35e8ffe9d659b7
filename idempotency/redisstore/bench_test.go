package redisstore_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
)

// unique is a request under a key that no other has.
func unique(n *atomic.Int64) idempotency.Request {
	r := asked
	r.Key.Value = fmt.Sprint(n.Add(1))
	return r
}

const sides = 16 // goroutines for each processor, as a service has many requests

// What the guard costs: claim, run nothing, complete.
func BenchmarkDoOnRedis(b *testing.B) {
	g := guard(b, redisstore.New(dial(b, serve(b).Addr()), redisstore.Config{}), idempotency.Config{})
	var n atomic.Int64
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, _, err := g.Do(b.Context(), unique(&n), answers(nil, "o1001")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a duplicate costs.
func BenchmarkReplayOnRedis(b *testing.B) {
	g := guard(b, redisstore.New(dial(b, serve(b).Addr()), redisstore.Config{}), idempotency.Config{})
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, _, err := g.Do(b.Context(), asked, answers(nil, "o1001")); err != nil && !errors.Is(err, idempotency.ErrInProgress) {
				b.Fatal(err)
			}
		}
	})
}

// The least that could be done instead: SET NX and, in the end, SET.
func BenchmarkBareSetNXAndSet(b *testing.B) {
	client := dial(b, serve(b).Addr())
	var n atomic.Int64
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			key := fmt.Sprint("bare:", n.Add(1))
			if err := client.SetNX(b.Context(), key, "P", 24*time.Hour).Err(); err != nil {
				b.Fatal(err)
			}
			if err := client.Set(b.Context(), key, "o1001", 24*time.Hour).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
