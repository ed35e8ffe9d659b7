package redlock

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// What a node denies it knows, also in quarantine; what it grants counts, for a
// lease that it was given then, when the quarantine is over.
func TestANodeInQuarantineKnowsWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		a := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second})
		b := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second})
		cycle(t, a, "k")
		cycle(t, b, "k")
		mem[0].restart(false)
		findOut(a)
		findOut(b)
		began := time.Now()
		lease := acquire(t, a, "k")
		lease.KeepAlive()
		synctest.Wait()
		if heldOn(mem, "k", lease.Token()) != 3 {
			t.Fatalf("held on %s: a node in quarantine is to fill up too", holders(mem, "k"))
		}

		away(mem[1])
		findOut(b)
		if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("two of three deny: %v", err)
		}
		var failure *AttemptError
		if err := lease.Extend(t.Context(), time.Second); !errors.Is(err, ErrNoQuorum) || !errors.As(err, &failure) || failure.Votes[0].Quarantined <= 0 {
			t.Errorf("extended by n3, and by what n1 was given in quarantine: %v", err)
		}
		mem[1].set(func(n *memNode) { n.refuse = nil })
		time.Sleep(12*time.Second - time.Since(began))
		if lease.Remaining() == 0 {
			t.Fatal(lease.reason())
		}
		away(mem[1])
		findOut(b)
		if err := lease.Extend(t.Context(), time.Second); err != nil {
			t.Errorf("n1 is out of quarantine: %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An extension by restarted nodes does not count, even if they have kept the key.
// The lease is as it was then, and its release counts.
func TestRestartedNodesExtendNothing(t *testing.T) {
	for name, until := range map[string]time.Duration{"released in time": 700 * time.Millisecond, "never released": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second})
				lease := acquire(t, l, "k")
				synctest.Wait()
				end := time.Now().Add(lease.Remaining())
				for _, n := range mem[:3] {
					n.restart(true)
				}
				findOut(l)
				for time.Until(end) > 400*time.Millisecond {
					var failure *AttemptError
					err := lease.Extend(t.Context(), time.Second)
					if !errors.Is(err, ErrNoQuorum) || !errors.As(err, &failure) || failure.Votes[0].Quarantined <= 0 {
						t.Fatal(err)
					}
					if left := lease.Remaining(); left != time.Until(end) {
						t.Errorf("%v are left, want %v", left, time.Until(end))
					}
					time.Sleep(50 * time.Millisecond)
				}
				time.Sleep(until - 600*time.Millisecond)
				if held := lease.Remaining() > 0; held != (until < time.Second) {
					t.Errorf("held: %v", held)
				}
				if err := lease.Release(t.Context()); (err == nil) != (until < time.Second) {
					t.Error(err)
				}
			})
		})
	}
}

// A vote counts only if the quarantine had ended before its round began: an answer
// that comes later is no better, as the fence that the round proposed is older.
func TestARoundThatBeginsInQuarantineDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		mem[0].booted = time.Now()
		mem[0].lag = 20 * time.Millisecond
		l := newLocker(t, nodes, Config{TTL: 10 * time.Second, MaxTTL: 10 * time.Second})
		synctest.Wait()
		lane := l.lanes[0]
		until := time.Now().Add(lane.voter.until - lane.at(l.clock.Now()))
		time.Sleep(time.Until(until) - 110*time.Millisecond)
		between := 0
		for {
			began := time.Now()
			lease, err := l.TryAcquire(t.Context(), "k")
			if err == nil {
				if began.Before(until) {
					t.Errorf("the round began %v before the end", until.Sub(began))
				}
				lease.Release(t.Context())
				break
			}
			if began.Before(until) && time.Now().After(until) {
				between++
			}
			time.Sleep(time.Millisecond)
		}
		if between == 0 {
			t.Error("no round lay across the end of the quarantine: the test shows nothing")
		}
	})
}

// A cluster that has just started grants nothing for MaxTTL and a little more.
// TryAcquire says so, Acquire waits.
func TestAcquireWaitsUntilRestartedNodesVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		for _, n := range mem {
			n.booted = time.Now()
			n.lag = 300 * time.Microsecond
		}
		time.Sleep(3 * time.Second)
		l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second})
		synctest.Wait()
		failure := noQuorum(t, l, "k")
		synctest.Wait() // all have answered
		const want = "acquire \"k\": no quorum (0 of 5 granted, 3 needed; 5 nodes quarantined for 9s more: restarted 4s ago, MaxTTL 10s)"
		if got := failure.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, v := range failure.Votes {
			var why *QuarantineError
			if v.Quarantined <= 8*time.Second || v.Quarantined > 9*time.Second || !errors.As(v.Err, &why) || why.For != v.Quarantined {
				t.Errorf("%+v", v)
			}
		}
		synctest.Wait()
		for _, n := range mem {
			if n.size() > 0 {
				t.Errorf("the attempt has left something on %s", n)
			}
		}
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if up := time.Since(mem[0].booted); up < 12*time.Second || up > 13*time.Second {
			t.Errorf("granted %v after the start", up)
		}
		if lease.attempts < 2 {
			t.Error("it did not try before")
		}
		lease.Release(t.Context())
	})
}

// While a majority has just restarted nobody gets any lock, and then everybody
// does. A minority is not noticed.
func TestRestartedMajorityGrantsNothingForAWhile(t *testing.T) {
	for _, restarted := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(restarted, " of 5"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				var lockers []*Locker
				for range 3 {
					lockers = append(lockers, newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second}))
				}
				for _, l := range lockers {
					cycle(t, l, "k")
				}
				synctest.Wait()
				for _, n := range mem[:restarted] {
					n.restart(false)
				}
				began := time.Now()
				for _, l := range lockers {
					findOut(l)
				}
				lockers = append(lockers, newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second}))
				for i := 0; time.Since(began) < 12*time.Second; i++ {
					for j, l := range lockers {
						lease, err := l.TryAcquire(t.Context(), fmt.Sprint(i, j))
						switch {
						case restarted < 3 && err != nil:
							t.Fatalf("a minority has restarted: %v", err)
						case restarted < 3:
							lease.Release(t.Context())
						case err == nil:
							t.Fatalf("granted %v after the restart", time.Since(began))
						case !errors.Is(err, ErrNoQuorum):
							t.Fatal(err)
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(1500 * time.Millisecond)
				for _, l := range lockers {
					cycle(t, l, "k")
				}
				takeDown(mem[restarted:], errors.New("refused"))
				if restarted < 3 {
					return
				}
				for _, l := range lockers { // with those alone that had restarted
					findOut(l)
					cycle(t, l, "k")
				}
			})
		})
	}
}

// Nodes that are said to keep every key vote at once after a restart.
func TestDurableNodesVoteAtOnceAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		for _, n := range mem {
			n.booted = time.Now()
		}
		l := newLocker(t, nodes, Config{DurableNodes: true})
		lease := acquire(t, l, "k")
		synctest.Wait()
		for _, n := range mem {
			n.restart(true)
		}
		findOut(l)
		cycle(t, l, "other")
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
