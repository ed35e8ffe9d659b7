package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// While all nodes come and go nothing panics, hangs or piles up, and all is well as
// soon as they stay.
//
// field-reports: 56, 124
func TestNodesThatComeAndGoDoNoLastingHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		mem, nodes := memNodes(5)
		for _, n := range mem {
			n.lag = time.Millisecond
		}
		l := newLocker(t, nodes, Config{TTL: time.Second})
		synctest.Wait()
		over := make(chan struct{})
		var wg sync.WaitGroup
		var mu sync.Mutex // guards what follows
		ok, failed := 0, 0
		for w := range 50 {
			draw := rand.New(rand.NewPCG(124, uint64(w)))
			wg.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+draw.IntN(50))*time.Millisecond)
					err := l.Do(ctx, fmt.Sprint("k", w%5), func(context.Context, *Lease) error { return nil })
					cancel()
					mu.Lock()
					if err == nil {
						ok++
					} else {
						failed++
					}
					mu.Unlock()
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrLost) {
						t.Errorf("worker %d: %v", w, err)
					}
					time.Sleep(time.Duration(draw.IntN(20)) * time.Millisecond)
				}
			})
		}
		for range 30 {
			for _, n := range mem {
				away(n)
			}
			time.Sleep(100 * time.Millisecond)
			for _, n := range mem {
				n.set(func(n *memNode) { n.refuse = nil })
			}
			time.Sleep(100 * time.Millisecond)
		}
		close(over)
		healed := time.Now()
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second-time.Since(healed))
		defer cancel()
		lease, err := l.Acquire(ctx, "k0")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if ok < 500 || failed < 500 {
			t.Errorf("%d succeeded and %d failed: the test shows little", ok, failed)
		}
		for _, n := range mem {
			if n.open() != 1 {
				t.Errorf("%s has %d connections", n, n.open())
			}
		}
		if len(l.line.spots) > 0 {
			t.Errorf("%d lines are left", len(l.line.spots))
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, n := range mem {
			if n.size() > 0 {
				t.Errorf("%s keeps %d keys", n, n.size())
			}
		}
		synctest.Wait()
		if n := goroutines(); n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
	})
}
