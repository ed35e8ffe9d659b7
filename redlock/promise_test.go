package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// Who was told that a lease may be relied on for so long relies on it for so
// long: nobody else has the lock before, unless it was released. That the holder
// is told of the end somewhat earlier does not shorten what was promised.
func TestNobodyElseHoldsBeforeThePromisedEnd(t *testing.T) {
	t.Run("runs out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := memNodes(3)
			a := newLocker(t, nodes, Config{TTL: time.Second})
			b := newLocker(t, nodes, Config{TTL: time.Second})
			promised := acquire(t, a, "k").Remaining()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for {
				if _, err := b.TryAcquire(ctx, "k"); err == nil {
					break
				}
				time.Sleep(500 * time.Microsecond)
			}
			if after := time.Since(began); after < promised {
				t.Errorf("another holds it after %v, and the holder was promised %v", after, promised)
			}
		})
	})
	// A step makes one reading of elapsed time run ahead of the other: an extension
	// may end later than the lease by the one, and earlier by the other.
	for name, extended := range map[string]struct{ before, after time.Duration }{
		"wall clock stepped":                               {},
		"wall clock stepped after an extension":            {before: 10 * time.Second},
		"wall clock stepped before an extension":           {after: 10 * time.Second},
		"wall clock stepped before an extension that ends": {after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := memNodes(3)
				c := clock.NewSkewed(1)
				a := newLocker(t, nodes, Config{TTL: 10 * time.Second, Clock: c})
				b := newLocker(t, nodes, Config{TTL: 10 * time.Second})
				lease := acquire(t, a, "k")
				began := time.Now()
				promised := lease.Remaining()
				extend := func(ttl time.Duration) {
					if ttl == 0 {
						return
					}
					if err := lease.Extend(t.Context(), ttl); err != nil {
						t.Fatal(err)
					}
					promised = max(promised, time.Since(began)+lease.Remaining())
				}
				time.Sleep(time.Second)
				extend(extended.before)
				c.Step(8 * time.Second)
				extend(extended.after)
				time.Sleep(time.Second)
				c.Step(time.Hour)
				if _, err := b.Acquire(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				if after := time.Since(began); after < promised {
					t.Errorf("another holds it after %v, and the holder was promised %v", after, promised)
				}
			})
		})
	}
}

// The end of a caller's context is in the error also when it comes together with
// the end of a round.
func TestAcquireThatEndsWithItsRoundHasTheContextsError(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			l := newLocker(t, nodes, Config{})
			synctest.Wait()
			for _, n := range mem {
				n.stop()
			}
			ctx, cancel := context.WithTimeout(t.Context(), l.nodeTimeout)
			defer cancel()
			if _, err := l.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A loss and an Extend may come at the same moment.
func TestALossAndAnExtendMayMeet(t *testing.T) {
	_, nodes := memNodes(3)
	l, err := New(nodes, Config{TTL: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for range 30 {
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; lease.Remaining() > 0 && i < 10_000; i++ {
			lease.Extend(context.Background(), 4*time.Millisecond+time.Duration(i)*time.Microsecond)
		}
		<-lease.Context().Done()
		lease.Release(context.Background())
	}
}
