package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// A lease that has run out is not extended into being again, whether somebody else
// has had the lock meanwhile or not. Its holder acquires anew, and has a larger fence.
//
// field-reports: 9
func TestALeaseThatRanOutIsNotExtended(t *testing.T) {
	for name, between := range map[string]bool{"nobody came": false, "another came and went": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				cfg := Config{TTL: 300 * time.Millisecond, Fenced: true}
				a, b := newLocker(t, nodes, cfg), newLocker(t, nodes, cfg)
				old := acquire(t, a, "k")
				last := old.Fence()
				time.Sleep(400 * time.Millisecond)
				if between {
					other := acquire(t, b, "k")
					last = other.Fence()
					if err := other.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if err := old.Extend(t.Context(), time.Second); !errors.Is(err, ErrLost) {
					t.Errorf("got %v, want ErrLost", err)
				}
				synctest.Wait()
				if got := holders(mem, "k"); got != "- - - - -" {
					t.Errorf("nodes hold %s", got)
				}
				if cause := context.Cause(old.Context()); !errors.Is(cause, ErrLost) || old.Remaining() != 0 {
					t.Errorf("%v, %v left", cause, old.Remaining())
				}
				if next := acquire(t, a, "k"); next.Fence() <= last {
					t.Errorf("fence %d after %d", next.Fence(), last)
				}
			})
		})
	}
}

// A lease on a key that the same client has just lost, or released, is renewed like
// its first: nothing of the one before gets in its way.
//
// field-reports: 13
func TestTheNextLeaseOnAKeyIsRenewedLikeTheFirst(t *testing.T) {
	for name, first := range map[string]func(t *testing.T, a *Locker, toNodes []*way){
		"lost in an outage": func(t *testing.T, a *Locker, toNodes []*way) {
			lease := acquire(t, a, "k")
			lease.KeepAlive()
			time.Sleep(time.Second)
			for _, w := range toNodes {
				w.set(0, true)
			}
			time.Sleep(time.Second)
			if !errors.Is(lease.reason(), ErrLost) {
				t.Errorf("%v after the outage", lease.reason())
			}
			for _, w := range toNodes {
				w.set(0, false)
			}
			time.Sleep(laterPause)
		},
		"released just before": func(t *testing.T, a *Locker, _ []*way) {
			lease := acquire(t, a, "k")
			lease.KeepAlive()
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				toNodes, all := ways(nodes)
				a, b := newLocker(t, all, Config{TTL: 600 * time.Millisecond}), newLocker(t, nodes, Config{})
				synctest.Wait()
				first(t, a, toNodes)
				lease, err := a.Acquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				lease.KeepAlive()
				before := mem[0].carried(OpExtend)
				for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
					if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
						t.Fatalf("another got %v, want ErrHeld", err)
					}
					if left := lease.Remaining(); left < 350*time.Millisecond { // renewed at 200 of 600 ms
						t.Fatalf("%v left", left)
					}
				}
				if n := mem[0].carried(OpExtend) - before; n < 13 || n > 17 {
					t.Errorf("%d renewals in 3 s", n)
				}
			})
		})
	}
}

// An acquire whose answers are lost has set the key, and yet nobody works under the
// lock until that is undone and somebody has it for certain.
//
// field-reports: 17
func TestFnRunsOnlyUnderALockThatIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 5, respfake.Options{})
		a, b := newLocker(t, nodes, Config{TTL: 30 * time.Second}), newLocker(t, nodes, Config{TTL: 30 * time.Second})
		synctest.Wait()
		for _, s := range servers[:3] {
			s.Mute(1, "set")
		}
		var inside atomic.Int32
		fn := func(context.Context, *Lease) error {
			if inside.Add(1) > 1 {
				t.Error("two at once")
			}
			time.Sleep(time.Second)
			inside.Add(-1)
			return nil
		}
		second := make(chan error, 1)
		time.AfterFunc(50*time.Millisecond, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			second <- b.Do(ctx, "k", fn)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := a.Do(ctx, "k", func(context.Context, *Lease) error {
			t.Error("it runs without a quorum")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		for i, s := range servers[:3] {
			if tokenOn(s, "k") == "" {
				t.Errorf("node %d was not set: the test shows nothing", i+1)
			}
		}
		if err := <-second; err != nil { // once the first's connections are given up
			t.Errorf("the second: %v", err)
		}
		synctest.Wait()
		if left := leftOn(servers); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}

// When Release has returned nil the next one gets the lock in one attempt, whoever
// it is, and what the release still has to do on slow nodes leaves them alone.
//
// field-reports: 66
func TestTheLockIsFreeWhenReleaseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		a, b := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{})
		for _, n := range mem[3:] {
			n.late = 60 * time.Millisecond
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 1000 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = done
			}
			if err := acquire(t, a, "k").Release(ctx); err != nil {
				t.Fatal(err)
			}
			next := acquire(t, b, "k")
			time.Sleep(200 * time.Millisecond)
			if got := heldOn(mem, "k", next.Token()); got < 3 || heldOn(mem[:3], "k", next.Token()) != 3 {
				t.Fatalf("round %d: nodes hold %s", i, holders(mem, "k"))
			}
			for _, n := range mem[3:] {
				if h := n.holder("k"); h != "" && h != next.Token() {
					t.Fatalf("round %d: %s holds what was released", i, n)
				}
			}
			if err := next.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			forgetLogs(mem)
		}
	})
}
