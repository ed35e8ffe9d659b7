package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// healing is a lease of which n1 has lost the key and is about to be given it
// back: n1 has said so in a round of extensions, which the others, who take 20 ms,
// have yet to grant.
type healing struct {
	clock *clock.Skewed
	mem   []*memNode
	l     *Locker
	lease *Lease
	round chan error
}

func newHealing(t *testing.T) *healing {
	h := &healing{clock: clock.NewSkewed(1), round: make(chan error, 1)}
	var nodes []Node
	h.mem, nodes = memNodes(3)
	h.l = newLocker(t, nodes, Config{TTL: 30 * time.Second, DurableNodes: true, Clock: h.clock})
	h.lease = acquire(t, h.l, "k")
	synctest.Wait()
	vanish(h.mem[:1])
	for _, n := range h.mem[1:] {
		n.set(func(n *memNode) { n.lag = 20 * time.Millisecond })
	}
	go func() { h.round <- h.lease.Extend(context.Background(), 30*time.Second) }()
	synctest.Wait()
	if n := h.mem[0].carried(OpExtend); n != 1 || acquires(h.mem[0], "k") != 1 {
		t.Fatalf("%d extends, %d acquires", n, acquires(h.mem[0], "k"))
	}
	return h
}

// endings are the ways in which a lease ends.
var endings = map[string]func(h *healing){
	"released": func(h *healing) { h.lease.Release(context.Background()) },
	"lost":     func(h *healing) { h.clock.Step(time.Hour); h.lease.Remaining() },
	"closed":   func(h *healing) { go h.l.Close(context.Background()) },
}

// eachEnding runs a test for each.
func eachEnding(t *testing.T, test func(t *testing.T, end func(h *healing))) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, end) })
		})
	}
}

// leavesNothing checks that n1 has no key, and after a release none has. What a lost
// lease has on the others stays as long as its holder was promised.
func (h *healing) leavesNothing(t *testing.T) {
	t.Helper()
	time.Sleep(3 * time.Second)
	for i, n := range h.mem {
		if n.holder("k") != "" && (i == 0 || !errors.Is(h.lease.reason(), ErrLost)) {
			t.Errorf("%s has the key", n)
		}
	}
}

func TestNothingIsHealedOnceTheLeaseHasEnded(t *testing.T) {
	eachEnding(t, func(t *testing.T, end func(h *healing)) {
		h := newHealing(t)
		time.Sleep(10 * time.Millisecond)
		end(h)
		<-h.round
		time.Sleep(time.Second)
		if n := acquires(h.mem[0], "k"); n != 1 {
			t.Errorf("n1 was sent %d acquires", n-1)
		}
		h.leavesNothing(t)
	})
}

// What n1 says after the lease has ended heals nothing either.
func TestALateAnswerHealsNothingOnceTheLeaseHasEnded(t *testing.T) {
	eachEnding(t, func(t *testing.T, end func(h *healing)) {
		h := newHealing(t)
		if err := <-h.round; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		vanish(h.mem[:1])
		before := acquires(h.mem[0], "k")
		h.mem[0].set(func(n *memNode) { n.lag = 80 * time.Millisecond })
		if err := h.lease.Extend(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		end(h)
		time.Sleep(time.Second)
		if n := acquires(h.mem[0], "k") - before; n != 0 {
			t.Errorf("n1 was sent %d acquires", n)
		}
		h.leavesNothing(t)
	})
}

// … and does while it is held.
func TestALateAnswerHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealing(t)
		<-h.round
		synctest.Wait()
		vanish(h.mem[:1])
		h.mem[0].set(func(n *memNode) { n.lag = 80 * time.Millisecond })
		if err := h.lease.Extend(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if h.mem[0].holder("k") != h.lease.Token() {
			t.Error("n1 has no key")
		}
	})
}

// An acquire that waits behind a flight is not sent any more when the lease has
// ended before that is back.
func TestHealingThatWaitsIsDroppedWhenTheLeaseEnds(t *testing.T) {
	eachEnding(t, func(t *testing.T, end func(h *healing)) {
		h := newHealing(t)
		resume := h.mem[0].stop()
		go h.l.Inspect(context.Background(), "other") // a flight that hangs
		if err := <-h.round; err != nil {
			t.Fatal(err)
		}
		lane := h.l.lanes[0]
		lane.mu.Lock()
		waits := len(lane.queue) == 1 && lane.queue[0].op.Kind == OpAcquire
		lane.mu.Unlock()
		if !waits {
			t.Fatal("there is nothing to drop: the test shows nothing")
		}
		time.Sleep(50 * time.Millisecond)
		end(h)
		time.Sleep(20 * time.Millisecond)
		resume()
		time.Sleep(time.Second)
		if n := acquires(h.mem[0], "k"); n != 1 {
			t.Errorf("n1 was sent %d acquires", n-1)
		}
		h.leavesNothing(t)
	})
}

// One that is under way is undone behind it.
func TestHealingUnderWayIsUndoneWhenTheLeaseEnds(t *testing.T) {
	eachEnding(t, func(t *testing.T, end func(h *healing)) {
		h := newHealing(t)
		h.mem[0].set(func(n *memNode) { n.late = 30 * time.Millisecond })
		if err := <-h.round; err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		end(h)
		time.Sleep(time.Second)
		if n := acquires(h.mem[0], "k"); n != 2 {
			t.Errorf("n1 was sent %d acquires, want one: the test shows nothing", n-1)
		}
		h.leavesNothing(t)
	})
}

// One that lies in a stopped node when its connection is given up is released by
// the next connection, which has had the one before killed, or goes on releasing
// where that is not permitted.
func TestHealingThatAStoppedNodeMayCarryOutIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(n *memNode)
		control bool
	}{
		"killed":            {change: func(*memNode) {}},
		"no CLIENT KILL":    {change: func(n *memNode) { n.noKill = true }},
		"restarted instead": {change: func(n *memNode) { time.AfterFunc(5500*time.Millisecond, func() { n.restart(false) }) }},
		"control":           {change: func(n *memNode) { n.killsNothing = true }, control: true},
	} {
		t.Run(name, func(t *testing.T) {
			eachEnding(t, func(t *testing.T, end func(h *healing)) {
				h := newHealing(t)
				h.mem[0].set(c.change)
				resume := h.mem[0].stop()
				if err := <-h.round; err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Millisecond)
				end(h)
				time.Sleep(6 * time.Second) // the connection is given up after 5 s
				resume()
				time.Sleep(time.Second)
				if c.control {
					if h.mem[0].holder("k") == "" {
						t.Error("nothing is left even without the kill: the test shows nothing")
					}
					return
				}
				h.leavesNothing(t)
			})
		})
	}
}

// A lost lease that nobody releases is undone where it was healed too, also where
// its acquire was never sent.
func TestALostLeaseIsUndoneWhereItWasHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		away(mem[0])
		c := clock.NewSkewed(1)
		l := newLocker(t, nodes, Config{TTL: 30 * time.Second, DurableNodes: true, Clock: c})
		lease := acquire(t, l, "k")
		synctest.Wait() // it could still be sent
		mem[0].set(func(n *memNode) { n.refuse = nil })
		time.Sleep(time.Second)
		if err := lease.Extend(t.Context(), 30*time.Second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if mem[0].holder("k") != lease.Token() {
			t.Fatal("n1 was not healed")
		}
		c.Step(time.Hour)
		if lease.Remaining() > 0 {
			t.Fatal("it is not lost")
		}
		time.Sleep(time.Minute)
		for _, n := range mem {
			if n.carried(OpRelease) == 0 {
				t.Errorf("%s was sent no release", n)
			}
		}
	})
}
