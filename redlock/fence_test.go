package redlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// field-reports: 117
func TestLeaseHasAFenceIfItsLockerIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		plain, fenced := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{Fenced: true})
		lease := acquire(t, plain, "plain")
		if lease.Fence() != 0 || mem[0].counter("plain") != 0 {
			t.Errorf("fence %d, counter %d without Fenced", lease.Fence(), mem[0].counter("plain"))
		}
		if f := (*Lease)(nil).Fence(); f != 0 {
			t.Errorf("a nil lease has fence %d", f)
		}
		first := acquire(t, fenced, "k")
		if !first.Fence().Valid() {
			t.Errorf("fence %d is none", first.Fence())
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		// Without any time between them.
		second := acquire(t, fenced, "k")
		if second.Fence() <= first.Fence() {
			t.Errorf("fence %d after %d", second.Fence(), first.Fence())
		}
		if first.Fence() == 0 {
			t.Error("a released lease has forgotten its fence")
		}
	})
}

func TestCountersOutliveTheirLocksByFar(t *testing.T) {
	for _, test := range []struct{ maxTTL, fenceTTL, want time.Duration }{
		{0, 0, 24 * time.Hour},
		{12 * time.Hour, 0, 120 * time.Hour},
		{0, 300 * time.Second, 300 * time.Second},
		{time.Second, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			l := newLocker(t, nodes, Config{Fenced: true, TTL: time.Second, MaxTTL: test.maxTTL, FenceTTL: test.fenceTTL})
			acquire(t, l, "k")
			synctest.Wait()
			if got := mem[0].history()[0].CounterTTL; got != test.want {
				t.Errorf("MaxTTL %v, FenceTTL %v: counters last %v, want %v", test.maxTTL, test.fenceTTL, got, test.want)
			}
		})
	}
}

// An extension is the same lease: it has the same fence, and keeps the counters.
//
// field-reports: 117
func TestFenceStaysThroughExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		var d diary
		cfg := Config{Fenced: true, TTL: 3 * time.Second, FenceTTL: 1234 * time.Hour, Trace: d.trace()}
		l, rival := newLocker(t, nodes, cfg), newLocker(t, nodes, Config{Fenced: true})
		lease := acquire(t, l, "k")
		f := lease.Fence()
		for range 5 {
			time.Sleep(time.Second)
			if err := lease.Extend(t.Context(), 3*time.Second); err != nil {
				t.Error(err)
			}
			if _, err := rival.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) { // this raises nothing either
				t.Errorf("a rival's acquire: %v", err)
			}
		}
		lease.KeepAlive()
		time.Sleep(10 * time.Second)
		if n, errs := d.read(); n < 14 || errs != nil {
			t.Errorf("after %d events: %v", n, errs)
		}
		if lease.Fence() != f || lease.Remaining() == 0 {
			t.Errorf("fence %d, was %d, %v left", lease.Fence(), f, lease.Remaining())
		}
		if got := counters(mem, "k", f); got != "+0 +0 +0" {
			t.Errorf("counters %s", got)
		}
		for i, n := range mem {
			for _, op := range n.history() {
				if op.Kind == OpExtend && (op.Counter != counterOf("k") || op.CounterTTL != 1234*time.Hour) {
					t.Errorf("node %d was to keep the counter %q for %v", i+1, op.Counter, op.CounterTTL)
				}
			}
			if n.carried(OpExtend) < 13 {
				t.Errorf("node %d was sent %d extends", i+1, n.carried(OpExtend))
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if next := acquire(t, rival, "k"); next.Fence() <= f {
			t.Errorf("the next has fence %d, after %d", next.Fence(), f)
		}
	})
}

// Nodes count on from where they are, and not much further than their own clocks,
// so whatever a client takes for the time, fences rise.
func TestFencesRiseWhateverTheClientsClockSays(t *testing.T) {
	since := func(d string) time.Duration { // from 2000-01-01, where bubbles begin
		at, err := time.Parse(time.DateOnly, d)
		if err != nil {
			t.Fatal(err)
		}
		return at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	steps := []time.Duration{
		0, time.Minute, -time.Minute, since("1970-01-01"), since("1969-12-31"), since("1901-01-01"), 0,
		since("2291-01-01"), // above 2^53 µs
		time.Second, -time.Second, math.MaxInt64 / 2, math.MinInt64 / 2, 0,
	}
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint("N=", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(n)
				var last fence.Token
				var grants fence.Token
				for _, step := range steps {
					c := clock.NewSkewed(1)
					c.Step(step)
					l := newLocker(t, nodes, Config{Fenced: true, Clock: c})
					synctest.Wait()
					for range 3 {
						lease := acquire(t, l, "k")
						grants++
						f := lease.Fence()
						if f <= last || !f.Valid() {
							t.Errorf("clock stepped by %v: fence %d after %d", step, f, last)
						}
						if ahead := f - micros(); ahead > 1e6+grants {
							t.Errorf("clock stepped by %v: a fence %d µs ahead of the nodes' clocks", step, ahead)
						}
						last = f
						if err := lease.Release(t.Context()); err != nil {
							t.Error(err)
						}
						time.Sleep(10 * time.Millisecond)
					}
					if got := counters(mem, "k", last); got != strings.TrimSpace(strings.Repeat(" +0", n)) {
						t.Errorf("clock stepped by %v: the nodes do not agree: %s", step, got)
					}
				}
			})
		})
	}
}

func TestFencesRiseWhateverTheNodesClocksSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{Fenced: true})
		other := newLocker(t, nodes, Config{Fenced: true})
		synctest.Wait()
		var last fence.Token
		steps := []time.Duration{0, time.Minute, -time.Minute, -24 * time.Hour, 24 * time.Hour}
		for round := range 40 {
			for i, n := range mem {
				n.set(func(n *memNode) {
					n.step = steps[(round*7+i*3+round*i)%len(steps)]
					n.lag = time.Duration((round+2*i)%5) * time.Millisecond
				})
			}
			for _, l := range []*Locker{l, other} {
				lease := acquire(t, l, "k")
				if lease.Fence() <= last {
					t.Errorf("round %d: fence %d after %d", round, lease.Fence(), last)
				}
				last = lease.Fence()
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
		}
		if stamps(mem) == 0 {
			t.Error("no stamp: the test shows nothing")
		}
	})
}

// A grant whose answer is lost has raised the counter, once, whatever comes after.
//
// field-reports: 29
func TestLostAnswerRaisesNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Fenced: true})
		synctest.Wait()
		var last fence.Token
		for i := range 10 {
			synctest.Wait() // all that was released
			mem[i%3].set(func(n *memNode) { n.mute = 1 })
			lease := acquire(t, l, "k")
			if lease.Fence() <= last {
				t.Errorf("fence %d after %d", lease.Fence(), last)
			}
			last = lease.Fence()
			time.Sleep(time.Second) // the node is connected again
			mute := 0
			mem[i%3].set(func(n *memNode) { mute = n.mute })
			if mute != 0 || mem[i%3].holder("k") != lease.Token() {
				t.Fatal("no answer was lost: the test shows nothing")
			}
			for range 2 {
				if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
			if got := counters(mem, "k", lease.Fence()); got != "+0 +0 +0" {
				t.Errorf("counters %s", got)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// What a node says again to the token that holds the key is what it said first.
func TestGrantOnceMoreIsTheSameFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Fenced: true})
		lease := acquire(t, l, "k")
		synctest.Wait()
		time.Sleep(time.Second)
		for _, n := range mem {
			c := dialConn(t, n, connLimit)
			again := lease.op(OpAcquire, time.Hour)
			again.Fence = micros()
			if got := mustSend(t, c, again)[0].Reply; got != (Reply{Vote: quorum.Granted, Fence: lease.Fence()}) {
				t.Errorf("%+v, want fence %d", got, lease.Fence())
			}
		}
		if got := counters(mem, "k", lease.Fence()); got != "+0 +0 +0" {
			t.Errorf("counters %s", got)
		}
	})
}

// A view has its own times, and the same fences.
func TestViewsShareTheirFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, l, _ := fencedNodes(t, Config{FenceTTL: 77 * time.Hour}, []int{1, 2, 3}, []int{40, 40, 40})
		view, err := l.WithTTL(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := view.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) { // 50 ms
			t.Errorf("got %v, want ErrNoQuorum", err)
		}
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 10 * time.Millisecond })
		}
		var last fence.Token
		for _, l := range []*Locker{l, view, l, view} {
			lease, err := l.Acquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if lease.Fence() <= last {
				t.Errorf("fence %d after %d", lease.Fence(), last)
			}
			last = lease.Fence()
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, op := range mem[0].history() {
			if op.Kind != OpRelease && op.CounterTTL != 77*time.Hour {
				t.Errorf("%v keeps the counter for %v", op.Kind, op.CounterTTL)
			}
		}
	})
}

// Do hands its function a lease with a fence.
func TestDoHasAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Fenced: true})
		var last fence.Token
		for range 3 {
			err := l.Do(t.Context(), "k", func(_ context.Context, lease *Lease) error {
				if lease.Fence() <= last {
					t.Errorf("fence %d after %d", lease.Fence(), last)
				}
				last = lease.Fence()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}
