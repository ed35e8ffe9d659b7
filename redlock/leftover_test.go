package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// An operation leaves its queue when its lease has ended: nothing is sent late.
// The lease is lost here, and its holder never releases it.
func TestTheAcquireOfALostLeaseIsNotSentLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		synctest.Wait()
		resume := mem[0].stop()
		acquire(t, l, "a")
		synctest.Wait() // it hangs in n1's flight; the next would travel with it otherwise
		acquire(t, l, "b")
		synctest.Wait()
		if n := mem[0].arrived(); n != 1 {
			t.Fatalf("%d operations went to n1, want one and the other behind it", n)
		}
		time.Sleep(2 * time.Second)
		if mem[1].size() != 0 {
			t.Fatal("they are not over")
		}
		resume()
		time.Sleep(100 * time.Millisecond)
		for _, op := range mem[0].history() {
			if op.Kind == OpAcquire && op.Key == "b" {
				t.Error("an acquire was sent a second after its lease had ended")
			}
		}
		if h := mem[0].holder("b"); h != "" {
			t.Error("n1 is locked for another TTL by a lease that is over")
		}
		if h := mem[0].holder("a"); h != "" {
			t.Error("n1 is locked for another TTL by a late acquire of a lease that is over")
		}
	})
}

// After Close, no key of ours is on any node that answers; that a lease was
// lost before does not excuse it.
func TestCloseReleasesWhatALostLeaseHasLeft(t *testing.T) {
	t.Run("wall clock stepped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			c := clock.NewSkewed(1)
			l := newLocker(t, nodes, Config{TTL: 30 * time.Second, Clock: c})
			lease := acquire(t, l, "k")
			c.Step(time.Hour)
			time.Sleep(time.Second)
			if lease.Remaining() != 0 {
				t.Fatal("the step did not end it")
			}
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
			for _, n := range mem {
				if n.size() != 0 {
					t.Errorf("%s still holds the key, and Close said nothing", n)
				}
			}
		})
	})
	t.Run("majority gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(5)
			l := newLocker(t, nodes, Config{TTL: 30 * time.Second})
			lease := acquire(t, l, "k")
			synctest.Wait()
			vanish(mem[:3])
			if err := lease.Extend(t.Context(), 20*time.Second); !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if n := mem[3].size() + mem[4].size(); n != 0 {
				t.Errorf("%d nodes still hold the key, and Close said nothing", n)
			}
		})
	})
}

// A lane that never connected owes nothing, whatever was once in its queue.
func TestCloseDoesNotWaitForANodeThatIsOwedNothing(t *testing.T) {
	t.Run("never connected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			mem[2].silent = true
			l := newLocker(t, nodes, Config{})
			cycle(t, l, "k")
			began := time.Now()
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > laterPause {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("hung while idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			l := newLocker(t, nodes, Config{})
			cycle(t, l, "k")
			synctest.Wait()
			mem[0].stop()
			time.Sleep(idlePing + 100*time.Millisecond) // the PING hangs
			began := time.Now()
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > laterPause {
				t.Errorf("took %v", took)
			}
		})
	})
}

// A debt is given up when its key has surely expired, also one that began while
// the lane's flight was overdue.
func TestDebtsOfAnOverdueFlightExpireToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		synctest.Wait()
		mem[0].set(func(n *memNode) { n.lag = 300 * time.Millisecond })
		lease := acquire(t, l, "k")
		time.Sleep(150 * time.Millisecond) // past the stall
		lease.Release(t.Context())
		mem[0].set(func(n *memNode) { n.fail = errors.New("NOPERM evalsha") })
		time.Sleep(time.Minute)
		lane := l.lanes[0]
		lane.mu.Lock()
		debts := len(lane.debts)
		lane.mu.Unlock()
		if debts != 0 {
			t.Errorf("%d debts for a key that expired a minute ago; %d releases sent", debts, mem[0].carried(OpRelease))
		}
	})
}

// A node that answers every command with an error (MISCONF, NOPERM, OOM) costs
// no more than one that is down: its lane's memory and traffic stay flat.
func TestANodeThatRefusesEveryCommandCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		for _, n := range mem {
			n.lag = time.Millisecond
		}
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		mem[0].set(func(n *memNode) { n.fail = errors.New("MISCONF Redis is configured to save RDB snapshots") })
		until := time.Now().Add(5 * time.Second)
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for time.Now().Before(until) {
					cycle(t, l, fmt.Sprint(w))
				}
			})
		}
		wg.Wait()
		lane := l.lanes[0]
		lane.mu.Lock()
		debts := len(lane.debts)
		lane.mu.Unlock()
		if debts > 10*maxFlight {
			t.Errorf("%d debts after 5 s", debts)
		}
		bad, good := mem[0].arrived(), mem[1].arrived()
		t.Logf("%d operations sent to the bad node, %d to a good one", bad, good)
		if bad > 2*good {
			t.Errorf("%d operations sent to the node that refuses all, %d to a good one", bad, good)
		}
	})
}

// A release needs two of three nodes that are well. That the acquire of one of
// them was still in its queue, and has been taken back, leaves the key as free
// there as a deletion does.
func TestReleaseSucceedsWithOneBadNodeAndOneThatWasNotReachedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		mem[2].set(func(n *memNode) { n.lag = 70 * time.Millisecond })
		other := acquire(t, l, "other") // n3's lane is late
		time.Sleep(60 * time.Millisecond)
		lease := acquire(t, l, "k")
		mem[0].stop()
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("two of three nodes are well: %v", err)
		}
		other.Release(t.Context())
	})
}
