package redlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// The error of an operation that asked nodes has each node's vote, also if a
// quorum granted.
func TestEveryErrorHasEachNodesVote(t *testing.T) {
	check := func(t *testing.T, err, want error) {
		t.Helper()
		var failure *AttemptError
		if !errors.Is(err, want) || !errors.As(err, &failure) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if len(failure.Votes) != 3 || failure.Attempts == 0 {
			t.Errorf("%d votes of 3 nodes, %d attempts: %v", len(failure.Votes), failure.Attempts, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		c := clock.NewSkewed(1)
		l := newLocker(t, nodes, Config{Clock: c})
		synctest.Wait()
		slow := func(lag time.Duration) {
			for _, n := range mem {
				n.set(func(n *memNode) { n.lag = lag })
			}
		}
		slow(20 * time.Millisecond)
		time.AfterFunc(10*time.Millisecond, func() { c.Suspend(time.Minute) })
		_, err := l.TryAcquire(t.Context(), "k")
		check(t, err, ErrTooSlow)

		slow(0)
		lease := acquire(t, l, "lost")
		c.Suspend(time.Minute)
		check(t, lease.Release(t.Context()), ErrLost)
	})
}

// Whatever Close finds under way, nothing of it stays.
func TestCloseLeavesNothingOfAcquiresUnderWay(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			for j, n := range mem {
				n.lag = time.Duration(j) * time.Millisecond
				n.late = time.Duration(j) * time.Millisecond / 2
			}
			l, err := New(nodes, Config{})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					for {
						key := string(rune('a' + w%3))
						var lease *Lease
						var err error
						if w%2 == 0 {
							lease, err = l.TryAcquire(context.Background(), key)
						} else {
							lease, err = l.Acquire(context.Background(), key)
						}
						if errors.Is(err, ErrClosed) {
							return
						}
						if err == nil && w%4 > 1 {
							lease.Release(context.Background())
						}
						time.Sleep(time.Duration(w+1) * 100 * time.Microsecond)
					}
				})
			}
			time.Sleep(5*time.Millisecond + time.Duration(i)*70*time.Microsecond)
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
			wg.Wait()
			for _, n := range mem {
				if n.size() != 0 {
					t.Errorf("%s keeps %d keys", n, n.size())
				}
			}
		})
	}
}

// One lease in the hands of many.
func TestALeaseMayBeUsedFromEverywhereAtOnce(t *testing.T) {
	_, nodes := memNodes(3)
	l, err := New(nodes, Config{TTL: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for range 100 {
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { lease.KeepAlive() })
			wg.Go(func() { lease.Extend(context.Background(), 250*time.Millisecond) })
			wg.Go(func() { lease.Context().Err(); lease.Until(); lease.Remaining() })
			wg.Go(func() { lease.Release(context.Background()) })
		}
		wg.Wait()
		if lease.Remaining() != 0 || lease.Context().Err() == nil {
			t.Fatal("held after its release")
		}
	}
}
