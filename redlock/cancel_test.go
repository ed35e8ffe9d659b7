package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// An acquire that is cancelled at any moment, or a lease that is released just after
// it came, leaves no key on any node and nobody who renews it.
//
// field-reports: 52, 99
func TestAnAcquireCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	for _, ttl := range []time.Duration{600 * time.Millisecond, 30 * time.Second} {
		for name, fenced := range map[string]bool{"plain": false, "fenced": true} {
			t.Run(fmt.Sprint(name, " ", ttl), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					draw := rand.New(rand.NewPCG(uint64(ttl), 52))
					mem, nodes := memNodes(5)
					l := newLocker(t, nodes, Config{TTL: ttl, Fenced: fenced})
					synctest.Wait()
					before := goroutines()
					won, lost := 0, 0
					for range 500 {
						for _, n := range mem {
							n.set(func(n *memNode) {
								n.late, n.lag = time.Duration(draw.IntN(10))*time.Millisecond, time.Duration(draw.IntN(20))*time.Millisecond
							})
						}
						ctx, cancel := context.WithCancel(context.Background())
						time.AfterFunc(time.Duration(draw.IntN(40_000))*time.Microsecond, cancel)
						moment := time.Duration(draw.IntN(20)) * time.Millisecond
						var err error
						if draw.IntN(2) == 0 {
							err = l.Do(ctx, "k", func(ctx context.Context, _ *Lease) error {
								won++
								<-ctx.Done()
								return ctx.Err()
							})
						} else if lease, failure := l.Acquire(ctx, "k"); failure == nil {
							won++
							lease.KeepAlive()
							time.Sleep(moment)
							lease.Release(ctx)
						} else {
							err = failure
						}
						if err != nil {
							lost++
							if !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
						}
						cancel()
					}
					if won < 100 || lost < 100 {
						t.Errorf("%d had the lock and %d were cancelled: the test shows little", won, lost)
					}
					time.Sleep(time.Second)
					renewals := mem[0].carried(OpExtend)
					for _, n := range mem {
						if n.size() > 0 {
							t.Errorf("%s keeps the key", n)
						}
					}
					time.Sleep(2 * ttl)
					if n := mem[0].carried(OpExtend) - renewals; n > 0 {
						t.Errorf("%d renewals after all was over", n)
					}
					if n := goroutines(); n > before {
						t.Errorf("%d goroutines, %d before", n, before)
					}
				})
			})
		}
	}
}
