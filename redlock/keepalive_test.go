package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

func TestKeptAliveLeaseOutlivesItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		a, b := newLocker(t, nodes, Config{TTL: 3 * time.Second}), newLocker(t, nodes, Config{})
		lease := acquire(t, a, "k")
		lease.KeepAlive()
		lease.KeepAlive()
		for range 60 {
			time.Sleep(time.Second)
			if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
				t.Fatalf("another got %v", err)
			}
			if left := lease.Remaining(); left < 1900*time.Millisecond {
				t.Fatalf("remaining %v, renewals are late", left)
			}
		}
		if n := mem[0].carried(OpExtend); n < 58 || n > 62 {
			t.Errorf("%d renewals in 60 s, want one a second", n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		before := mem[0].carried(OpExtend)
		time.Sleep(10 * time.Second)
		if mem[0].carried(OpExtend) != before {
			t.Error("renewed after release")
		}
	})
}

func TestRenewalRetriesThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: 3 * time.Second})
		lease := acquire(t, l, "k")
		lease.KeepAlive()
		time.Sleep(900 * time.Millisecond)
		var resume []func()
		for _, n := range mem[:3] {
			resume = append(resume, n.stop())
		}
		time.Sleep(1500 * time.Millisecond)
		if n := mem[4].carried(OpExtend); n < 5 {
			t.Errorf("%d tries in 1.4 s", n)
		}
		for _, r := range resume {
			r()
		}
		time.Sleep(5 * time.Second)
		if lease.Remaining() == 0 {
			t.Errorf("lost: %v", context.Cause(lease.Context()))
		}
	})
}

// The work is told, soon, when the lock has vanished.
//
// field-reports: 11
func TestHolderIsToldWithinARenewalThatTheLockHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: 900 * time.Millisecond})
		var took time.Duration
		err := l.Do(t.Context(), "k", func(ctx context.Context, lease *Lease) error {
			time.Sleep(time.Second)
			vanish(mem[:3])
			began := time.Now()
			<-ctx.Done()
			took = time.Since(began)
			if !errors.Is(context.Cause(ctx), ErrLost) || lease.Remaining() != 0 {
				t.Errorf("cause %v, remaining %v", context.Cause(ctx), lease.Remaining())
			}
			return nil
		})
		if took > 400*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		if !errors.Is(err, ErrLost) {
			t.Errorf("Do returned %v, want ErrLost", err)
		}
	})
}

func TestMaxHoldEndsRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second, MaxHold: 10 * time.Second})
		began := time.Now()
		err := l.Do(t.Context(), "k", func(ctx context.Context, _ *Lease) error {
			<-ctx.Done()
			return nil
		})
		took := time.Since(began)
		if !errors.Is(err, ErrLost) || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("held for %v, %v", took, err)
		}
	})
}

// Whatever the timing of release, cancel and renewal, nothing goes on renewing, and
// a new lease on the key is renewed.
//
// field-reports: 13, 52
func TestRenewalEndsWithItsLeaseAndOnlyWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 600 * time.Millisecond})
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 5 * time.Millisecond })
		}
		synctest.Wait()
		before := goroutines()
		for i := range 500 {
			lease := acquire(t, l, fmt.Sprint("k", i%3))
			lease.KeepAlive()
			time.Sleep(time.Duration(rng.IntN(450)) * time.Millisecond)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		held := acquire(t, l, "k0")
		held.KeepAlive()
		time.Sleep(3 * time.Second)
		if held.Remaining() == 0 {
			t.Error("the last lease was not renewed")
		}
		held.Release(t.Context())
		synctest.Wait()
		renewals := mem[0].carried(OpExtend)
		time.Sleep(2 * time.Second)
		if mem[0].carried(OpExtend) != renewals || mem[0].size() != 0 {
			t.Errorf("%d renewals and %d keys after all was released", mem[0].carried(OpExtend)-renewals, mem[0].size())
		}
		if n := goroutines(); n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
	})
}

// A suspended or stepped clock moves the renewal with the validity.
func TestRenewalFollowsTheClockOfTheValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		skewed := clock.NewSkewed(1)
		l := newLocker(t, nodes, Config{TTL: 9 * time.Second, Clock: skewed})
		lease := acquire(t, l, "k")
		lease.KeepAlive()
		time.Sleep(time.Second)
		skewed.Suspend(5 * time.Second) // 6 of 9 s are gone; the nodes have slept too, or not
		time.Sleep(2 * maxTick)
		if mem[0].carried(OpExtend) != 1 || lease.Remaining() < 8*time.Second {
			t.Errorf("%d renewals, remaining %v", mem[0].carried(OpExtend), lease.Remaining())
		}
	})
}

func TestManyLeasesAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 3 * time.Second})
		var leases []*Lease
		for i := range 2000 {
			lease := acquire(t, l, fmt.Sprint(i))
			lease.KeepAlive()
			leases = append(leases, lease)
		}
		time.Sleep(10 * time.Second)
		for _, lease := range leases {
			if lease.Remaining() < 1500*time.Millisecond {
				t.Fatalf("%s: remaining %v", lease.Key(), lease.Remaining())
			}
		}
	})
}

// field-reports: 83
func TestDoReturnsFnsErrorFirstJoinedWithTheRelease(t *testing.T) {
	errBiz := errors.New("business")
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		if err := l.Do(t.Context(), "k", func(context.Context, *Lease) error { return nil }); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		if err := l.Do(t.Context(), "k", func(context.Context, *Lease) error { return errBiz }); err == nil || err.Error() != "business" {
			t.Errorf("got %v, want the business error alone", err)
		}
		if err := l.Do(t.Context(), "k", func(ctx context.Context, lease *Lease) error { return lease.Release(ctx) }); err != nil {
			t.Errorf("released by fn: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Do(ctx, "k", func(ctx context.Context, _ *Lease) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
		synctest.Wait()
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left behind: %s", got)
		}
		err = l.Do(t.Context(), "k", func(context.Context, *Lease) error {
			takeDown(mem, errors.New("connection refused"))
			return errBiz
		})
		if !errors.Is(err, errBiz) || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("got %v, want the business error and ErrNoQuorum", err)
		}
		for _, n := range mem {
			n.set(func(n *memNode) { n.refuse = nil })
		}
		time.Sleep(time.Minute) // out of quarantine
		ctx, cancel = context.WithCancel(t.Context())
		err = l.Do(ctx, "k", func(ctx context.Context, _ *Lease) error {
			for _, n := range mem {
				away(n)
			}
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("got %v, want Canceled and ErrNoQuorum", err)
		}
	})
}

// field-reports: 83
func TestDoReleasesWhenFnPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			l.Do(t.Context(), "k", func(context.Context, *Lease) error { panic("boom") })
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Do(context.Background(), "k", func(context.Context, *Lease) error { runtime.Goexit(); return nil })
		}()
		<-done
		synctest.Wait()
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left behind: %s", got)
		}
		var fell time.Time
		func() { // it goes on in time although no node answers
			defer func() {
				if r := recover(); r != "boom" || time.Since(fell) > l.nodeTimeout {
					t.Errorf("recovered %v after %v", r, time.Since(fell))
				}
			}()
			l.Do(t.Context(), "k", func(context.Context, *Lease) error {
				for _, n := range mem {
					n.stop()
				}
				fell = time.Now()
				panic("boom")
			})
		}()
	})
}
