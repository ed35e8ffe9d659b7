package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// What an attempt has used of its time is missing from its validity, and one that
// has used it up is no lease and leaves nothing.
//
// field-reports: 3
func TestAnAttemptIsWorthWhatItsTimeHasLeft(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{ // by a TTL of 1 s, 1 % and 2 ms off
		0:    988,
		100:  888,
		500:  488,
		987:  0, // a millisecond: its holder would have to be told of the end at once
		988:  0,
		1000: 0,
		1500: 0,
	} {
		took, want = took*time.Millisecond, want*time.Millisecond
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				c := clock.NewSkewed(1)
				l := newLocker(t, nodes, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond, Clock: c})
				synctest.Wait()
				lag := min(took, 100*time.Millisecond)
				for _, n := range mem {
					n.set(func(n *memNode) { n.lag = lag })
				}
				if took > lag { // the machine sleeps for the rest
					time.AfterFunc(lag/2, func() { c.Suspend(took - lag) })
				}
				lease, err := l.TryAcquire(t.Context(), "k")
				if got := lease.Remaining(); got != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, ErrTooSlow) {
					t.Errorf("%v left, %v, want %v", got, err, want)
				}
				time.Sleep(500 * time.Millisecond)
				if got := heldOn(mem, "k", lease.Token()); want > 0 && got != 5 || want == 0 && holders(mem, "k") != "- - - - -" {
					t.Errorf("nodes hold %s", holders(mem, "k"))
				}
			})
		})
	}
}

// No way of asking says that a lease is held when its time is up, however late
// nodes answer and whatever they say; nor when a majority has lost it.
//
// field-reports: 15
func TestNothingSaysHeldAtTheEndOfTheValidity(t *testing.T) {
	for name, late := range map[string]int{"all nodes answer at once": 0, "one answers late": 1, "all answer late": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond})
				lease := acquire(t, l, "k")
				end := time.Now().Add(lease.Remaining())
				ctx := lease.Context()
				time.Sleep(900 * time.Millisecond)
				for _, n := range mem[:late] {
					n.set(func(n *memNode) { n.lag = 200 * time.Millisecond })
				}
				if late > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				extended := make(chan error, 1)
				if late == 5 { // its answer would come after the end
					go func() { extended <- lease.Extend(context.Background(), time.Second) }()
				} else {
					extended <- ErrLost
				}
				if lease.Remaining() == 0 || ctx.Err() != nil {
					t.Error("it is over already")
				}
				for ; time.Until(end) > -300*time.Millisecond; time.Sleep(time.Millisecond) {
					if time.Until(end) <= 0 && (lease.Remaining() > 0 || ctx.Err() == nil || !lease.Until().IsZero()) {
						t.Fatalf("held %v after the end", -time.Until(end))
					}
				}
				if err := <-extended; !errors.Is(err, ErrLost) {
					t.Errorf("an extension across the end: %v", err)
				}
				if err := lease.Extend(t.Context(), time.Second); !errors.Is(err, ErrLost) {
					t.Errorf("an extension after the end: %v", err)
				}
			})
		})
	}
	t.Run("gone from a majority", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(5)
			l := newLocker(t, nodes, Config{TTL: time.Second})
			lease := acquire(t, l, "k")
			synctest.Wait()
			vanish(mem[:3])
			if err := lease.Extend(t.Context(), time.Second); !errors.Is(err, ErrLost) || lease.Remaining() > 0 || lease.Context().Err() == nil {
				t.Errorf("%v, %v left", err, lease.Remaining())
			}
		})
	})
}

// One who waits, holds, renews and releases takes as long for it whatever the wall
// clock is set to. A step forward may have been a suspend, which ends a lease that
// is held; it changes no wait, and nothing of a lease that comes later.
//
// field-reports: 23
func TestAStepOfTheWallClockChangesNoTiming(t *testing.T) {
	live := func(waiting, holding time.Duration) (times []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(5)
			c := clock.NewSkewed(1)
			began := time.Now()
			note := func() { times = append(times, time.Since(began)) }
			l := newLocker(t, nodes, Config{
				TTL: 3 * time.Second, Clock: c, Backoff: func(int) time.Duration { return 70 * time.Millisecond },
				Trace: &Trace{Extended: func(ExtendEvent) { note() }},
			})
			for _, n := range mem {
				n.lag = time.Millisecond
				n.steal("k", 1200*time.Millisecond)
			}
			time.AfterFunc(600*time.Millisecond, func() { c.Step(waiting) })
			time.AfterFunc(4*time.Second, func() { c.Step(holding) })
			lease, err := l.Acquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			note()
			times = append(times, lease.Remaining())
			lease.KeepAlive()
			time.Sleep(6 * time.Second)
			times = append(times, lease.Remaining())
			if err := lease.Extend(t.Context(), 5*time.Second); err != nil {
				t.Error(err)
			}
			times = append(times, lease.Remaining())
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			note()
		})
		return times
	}
	undisturbed := live(0, 0)
	if len(undisturbed) < 10 {
		t.Errorf("%v: the test shows little", undisturbed)
	}
	for _, steps := range [][2]time.Duration{{-time.Hour, 0}, {0, -time.Hour}, {time.Hour, -time.Hour}, {time.Hour, 0}} {
		if got := live(steps[0], steps[1]); !slices.Equal(got, undisturbed) {
			t.Errorf("stepped by %s: %v\nundisturbed: %v", fmt.Sprint(steps), got, undisturbed)
		}
	}
}

// A TTL is chosen between two evils. One shorter than the work lets another in before
// the work is over, as its holder is told; one that is long keeps everybody out for so
// long when its holder dies, and no longer.
func TestShortTTLsOverlapAndLongOnesBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		a, b := newLocker(t, nodes, Config{TTL: 100 * time.Millisecond}), newLocker(t, nodes, Config{})
		lease := acquire(t, a, "k")
		time.Sleep(500 * time.Millisecond) // the work
		if next, err := b.TryAcquire(t.Context(), "k"); err != nil || next.Remaining() == 0 {
			t.Errorf("another does not get in: %v", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, ErrLost) {
			t.Errorf("its holder is told %v", cause)
		}
	})
	for _, ttl := range []time.Duration{time.Second, 10 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			b := newLocker(t, nodes, Config{})
			for _, n := range mem { // what one who has died leaves
				n.steal("k", ttl)
			}
			began := time.Now()
			if _, err := b.Acquire(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < ttl || took > ttl+250*time.Millisecond { // and a back-off
				t.Errorf("a TTL of %v blocks for %v", ttl, took)
			}
		})
	}
}
