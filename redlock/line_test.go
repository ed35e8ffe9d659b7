package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitersOfOneProcessGoInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{})
		first := acquire(t, l, "k")
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				lease, err := l.Acquire(context.Background(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				if err := lease.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if got := mem[0].carried(OpAcquire); got != 1 {
			t.Errorf("%d acquires were sent while the lock was held by this process", got)
		}
		first.Release(t.Context())
		wg.Wait()
		if len(order) != 50 || !slices.IsSorted(order) {
			t.Errorf("order %v", order)
		}
		if got := mem[0].carried(OpAcquire); got != 51 {
			t.Errorf("%d acquires for 51 leases", got)
		}
	})
}

// gathering is a node whose flights wait for all who are about to queue something.
type gathering struct{ Node }

func (g gathering) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := g.Node.Connect(ctx, limit)
	return gatheringConn{c}, err
}

type gatheringConn struct{ Conn }

func (gatheringConn) Gather() { time.Sleep(time.Nanosecond) }

// The next in line is sent for together with the release before, so that a handover
// takes one round trip; but now and then others may find the key free.
func TestTheNextInLineIsSentForWithTheReleaseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		const roundTrip = 10 * time.Millisecond
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = roundTrip })
		}
		for i := range nodes {
			nodes[i] = gathering{nodes[i]}
		}
		l := newLocker(t, nodes, Config{})
		first := acquire(t, l, "k")
		var last time.Time
		var took []time.Duration // appended to by one holder after another
		var wg sync.WaitGroup
		for range 4 * gapEvery {
			wg.Go(func() {
				lease, err := l.Acquire(context.Background(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				took = append(took, time.Since(last))
				last = time.Now()
				if err := lease.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		last = time.Now()
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		for i, took := range took {
			want := roundTrip
			if i%gapEvery == gapEvery-1 {
				want *= 2
			}
			if took.Truncate(time.Millisecond) != want {
				t.Errorf("handover %d took %v, want %v", i, took, want)
			}
		}
	})
}

func TestTryAcquireAsksNoNodeWhileThisProcessHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		acquire(t, l, "k")
		synctest.Wait()
		asked := mem[0].arrived()
		_, err := l.TryAcquire(t.Context(), "k")
		var failure *AttemptError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &failure) || !failure.Local || len(failure.Votes) != 0 {
			t.Errorf("got %v", err)
		}
		if mem[0].arrived() != asked {
			t.Error("nodes were asked")
		}
		time.Sleep(1100 * time.Millisecond) // it runs out, and nobody releases it
		if _, err := l.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("after it ran out: %v", err)
		}
	})
}

func TestTheNextInLineGoesWhenTheLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		acquire(t, l, "k")
		began := time.Now()
		if _, err := l.Acquire(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 980*time.Millisecond || took > 1300*time.Millisecond {
			t.Errorf("got it after %v", took)
		}
	})
}

// Waiters that give up at any moment leave the line usable, and empty.
//
// field-reports: 56
func TestWaitersThatGiveUpLeaveTheLineMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		rng := rand.New(rand.NewPCG(5, 6))
		for range 50 {
			holder := acquire(t, l, "k")
			var wg sync.WaitGroup
			for range 100 {
				timeout := time.Duration(1+rng.IntN(50)) * time.Millisecond
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), timeout)
					defer cancel()
					lease, err := l.Acquire(ctx, "k")
					if err == nil {
						lease.Release(context.Background())
					} else if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
			holder.Release(t.Context())
			wg.Wait()
			lease, err := l.TryAcquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			lease.Release(t.Context())
		}
		if n := len(l.line.spots); n != 0 {
			t.Errorf("%d entries for keys that nobody wants", n)
		}
	})
}

func TestAWaitThatEndsInLineSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Acquire(ctx, "k")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
	})
}
