package redlock

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// countingClock counts its readings, and calls enough at the limit: a loop that
// waits for nothing reads the clock for ever, and in a bubble stops time.
type countingClock struct {
	clock.Clock
	reads  atomic.Int64
	limit  int64
	enough func()
}

func (c *countingClock) Now() clock.Instant {
	if c.reads.Add(1) == c.limit {
		c.enough()
	}
	return c.Clock.Now()
}

// fn may take its time after its context has ended, and Do waits for it: that
// must not keep a processor busy.
func TestDoWaitsQuietlyForFnAfterItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		spinning := make(chan struct{})
		c := &countingClock{Clock: clock.NewSkewed(1), limit: 20_000, enough: func() { close(spinning) }}
		l := newLocker(t, nodes, Config{TTL: time.Second, Clock: c})
		ctx, cancel := context.WithCancel(t.Context())
		l.Do(ctx, "k", func(ctx context.Context, _ *Lease) error {
			cancel()
			select {
			case <-time.After(900 * time.Millisecond): // rolling back, say
			case <-spinning:
				t.Errorf("%d readings of the clock while fn ended its work", c.reads.Load())
			}
			return nil
		})
	})
}

// Do renews while fn runs, also while it runs to its end after a cancel: the
// work may be in the middle of something.
func TestDoHoldsTheLockUntilFnReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		stop := make(chan struct{})
		c := &countingClock{Clock: clock.NewSkewed(1), limit: 20_000, enough: func() { close(stop) }}
		l := newLocker(t, nodes, Config{TTL: time.Second, Clock: c})
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Do(ctx, "k", func(_ context.Context, lease *Lease) error {
			cancel()
			select {
			case <-time.After(3 * time.Second):
			case <-stop:
			}
			if lease.Remaining() == 0 || heldOn(mem, "k", lease.Token()) < 2 {
				t.Error("the lock has gone while fn still runs")
			}
			if n := mem[0].carried(OpExtend); n == 0 {
				t.Error("it was not renewed once")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A holder that is winding up after a cancel can ask for the time it needs.
func TestExtendWorksAfterDosCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		for _, n := range mem {
			n.lag = time.Millisecond
		}
		l := newLocker(t, nodes, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		l.Do(ctx, "k", func(ctx context.Context, lease *Lease) error {
			cancel()
			if err := lease.Extend(context.WithoutCancel(ctx), 20*time.Second); err != nil {
				t.Errorf("all nodes are well and the lease has %v left: %v", lease.Remaining(), err)
			}
			return nil
		})
	})
}

// A lease that is kept alive, and was extended by more than its TTL, has no
// renewal due for a while.
func TestRenewalsAfterALongExtendAreNotInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		for _, n := range mem {
			n.lag = time.Millisecond // without any, the bubble's time would stand still
		}
		l := newLocker(t, nodes, Config{TTL: time.Second})
		lease := acquire(t, l, "k")
		lease.KeepAlive()
		if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if n := mem[0].carried(OpExtend); n > 30 {
			t.Errorf("%d extends in 9 s, with a TTL of a second", n)
		}
	})
}

// The keeper learns of a change in the order in which changes happened: a stale
// picture of a lease that nobody kept alive must not replace a newer one.
func TestKeepAliveIsNotUndoneByAnExtendAtTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(1)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		for range 20 {
			lease := acquire(t, l, "k")
			l.keeper.mu.Lock()
			start := lease.start
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := lease.Extend(t.Context(), time.Second+time.Millisecond); err != nil {
					t.Error(err)
				}
			})
			for range 20_000 { // until Extend is about to tell the keeper
				runtime.Gosched()
				lease.mu.Lock()
				changed := lease.start != start || lease.span > validity(time.Second, 0, l.cfg.Drift)
				lease.mu.Unlock()
				if changed {
					break
				}
			}
			for range 1000 {
				runtime.Gosched()
			}
			l.keeper.mu.Unlock()
			lease.KeepAlive()
			wg.Wait()
			time.Sleep(3 * time.Second)
			if lease.Remaining() == 0 {
				t.Fatalf("kept alive, all nodes well, and lost: %v", lease.reason())
			}
			lease.Release(t.Context())
		}
	})
}

// Whatever settings New accepts, a lease that is kept alive is renewed before
// it ends.
func TestEveryAcceptedTTLCanBeKeptAlive(t *testing.T) {
	for name, cfg := range map[string]Config{
		"3ms":       {TTL: 3 * time.Millisecond},
		"2700µs":    {TTL: 2700 * time.Microsecond},
		"drift 0.7": {TTL: time.Second, Drift: clock.Drift{Rate: 0.7}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := memNodes(3)
				l := newLocker(t, nodes, cfg)
				lease := acquire(t, l, "k")
				lease.KeepAlive()
				time.Sleep(3 * cfg.TTL)
				if lease.Remaining() == 0 {
					t.Errorf("lost, with all nodes well and answering at once: %v", lease.reason())
				}
			})
		})
	}
}

// A TTL that can never give a lease is refused by New, not found out in
// production.
func TestEveryAcceptedTTLCanBeAcquired(t *testing.T) {
	for name, cfg := range map[string]Config{
		"2050µs":     {TTL: 2050 * time.Microsecond},
		"drift 0.99": {TTL: 400 * time.Millisecond, Drift: clock.Drift{Rate: 0.99}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := memNodes(3)
				cfg.Clock = clock.NewSkewed(1)
				l, err := New(nodes, cfg)
				if err != nil {
					if !errors.Is(err, ErrInvalid) {
						t.Error(err)
					}
					return
				}
				defer l.Close(context.Background())
				if _, err := l.TryAcquire(t.Context(), "k"); err != nil {
					t.Errorf("accepted, and on a free key with no delay at all: %v", err)
				}
			})
		})
	}
}

// NodeTimeout is how long a node's answer is waited for, if New accepts it.
func TestAnAnswerWithinNodeTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		l := newLocker(t, nodes, Config{TTL: 30 * time.Second, NodeTimeout: 7 * time.Second})
		synctest.Wait()
		time.AfterFunc(6*time.Second, mem[0].stop())
		if _, err := l.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("the answer came after 6 of 7 s: %v", err)
		}
	})
}

// A short TTL, used once, does not have the keeper look at everything every
// millisecond from then on.
func TestAShortTTLOnceDoesNotKeepTheKeeperBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		c := &countingClock{Clock: clock.NewSkewed(1)}
		l := newLocker(t, nodes, Config{TTL: 30 * time.Second, Clock: c})
		short, err := l.WithTTL(20 * time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		acquire(t, l, "long")
		acquire(t, short, "short").Release(t.Context())
		time.Sleep(time.Second)
		before := c.reads.Load()
		time.Sleep(time.Second)
		if n := c.reads.Load() - before; n > 100 {
			t.Errorf("%d wake-ups in a second for one lease of 30 s", n)
		}
	})
}

// A view has the NodeTimeout that goes with its own TTL, also when several
// callers share the lane.
func TestAViewWaitsItsOwnNodeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 25 * time.Millisecond})
		long, err := l.WithTTL(10 * time.Second) // NodeTimeout 50 ms
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 20 * time.Millisecond })
		}
		var wg sync.WaitGroup
		wg.Go(func() { cycle(t, long, "a") })
		time.Sleep(15 * time.Millisecond)
		cycle(t, long, "b")
		wg.Wait()
	})
}

// What New was given is settled: a Locker has no fields to set from outside.
func TestALockerHasNoFieldsToSet(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Locker]()) {
		if f.IsExported() {
			t.Errorf("locker.%s can be read and set from any package", f.Name)
		}
	}
}

// A timer of a clock that runs fast takes time all the same: one that fired too
// early would be set again for the rest, for ever.
func TestATimerOfAFastClockTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSkewed(1.003)
		began := time.Now()
		timer := c.NewTimer(time.Nanosecond)
		<-timer.C()
		timer.Reset(time.Nanosecond)
		<-timer.C()
		if took := time.Since(began); took != 2*time.Nanosecond {
			t.Errorf("took %v", took)
		}
	})
}

// Nodes too busy to answer within NodeTimeout are not asked again and again: they
// answer in the end, and the lease goes on.
func TestRenewalsBearNodesThatAnswerLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: 10 * time.Second})
		lease := acquire(t, l, "k")
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 4 * l.nodeTimeout })
		}
		lease.KeepAlive()
		time.Sleep(time.Minute)
		if err := lease.Context().Err(); err != nil {
			t.Fatal(context.Cause(lease.Context()))
		}
		for _, n := range mem {
			if sent := n.carried(OpExtend); sent > 20 {
				t.Errorf("%s was asked %d times for 18 renewals", n, sent)
			}
		}
	})
}
