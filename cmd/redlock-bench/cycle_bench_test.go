package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkCycle is one acquire and its release on five nodes, by one goroutine
// and by 64 for each processor, each on keys of its own; without fences and with
// them. Embedded servers run in this process: their allocations are counted too.
func BenchmarkCycle(b *testing.B) {
	for _, kind := range []string{kindEmbedded, kindSpawn} {
		b.Run(kind, func(b *testing.B) {
			if kind == kindSpawn {
				redisproc.Require(b)
			}
			for _, fenced := range []bool{false, true} {
				name := ""
				if fenced {
					name = " fenced"
				}
				b.Run("sequential"+name, func(b *testing.B) {
					l := lockerOn(b, kind, fenced)
					keys := numbered("own:0:", ownKeys)
					for i := 0; b.Loop(); i++ {
						cycle(b, l, keys[i%ownKeys])
					}
				})
				b.Run("parallel"+name, func(b *testing.B) {
					l := lockerOn(b, kind, fenced)
					var workers atomic.Int64
					b.SetParallelism(64)
					b.RunParallel(func(pb *testing.PB) {
						keys := numbered(fmt.Sprintf("own:%d:", workers.Add(1)), ownKeys)
						for i := 0; pb.Next(); i++ {
							cycle(b, l, keys[i%ownKeys])
						}
					})
				})
			}
		})
	}
}

// cycle acquires key and releases it.
func cycle(b *testing.B, l *redlock.Locker, key string) {
	lease, err := l.TryAcquire(b.Context(), key)
	if err == nil {
		err = lease.Release(b.Context())
	}
	if err != nil {
		b.Error(err)
	}
}

// lockerOn is a Locker on five nodes, connected and warm; what it took to get
// there is not counted.
func lockerOn(b *testing.B, kind string, fenced bool) *redlock.Locker {
	b.Helper()
	c, err := nodeSet{kind: kind, count: 5}.up(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	cfg := c.config(10*time.Second, 30*time.Second, "bench:")
	cfg.Fenced = fenced
	cfg.NodeTimeout = cfg.TTL / 4 // a busy machine makes no cycle fail
	l, err := redlock.Dial(c.urls, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		l.Close(context.Background())
		if err := c.down(); err != nil {
			b.Error(err)
		}
	})
	cycle(b, l, "warm-up")
	b.ReportAllocs()
	b.ResetTimer()
	return l
}
