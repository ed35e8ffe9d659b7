package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// A node has granted an attempt that is still under way, and forgets that in a
// restart. It is in quarantine then, but not only for new leases: one that is held
// must not move there from the nodes that the attempt has yet to ask.
func TestALeaseDoesNotMoveToANodeInQuarantine(t *testing.T) {
	for name, healed := range map[string]bool{"acquired there": false, "healed there": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				fromA, toA := ways(nodes)
				fromB, toB := ways(nodes)
				a := newLocker(t, toA, Config{TTL: time.Second, MaxTTL: 10 * time.Second})
				b := newLocker(t, toB, Config{TTL: 8 * time.Second, NodeTimeout: 2 * time.Second, MaxTTL: 10 * time.Second})
				findOut(a)
				findOut(b)

				var holder *Lease
				if healed { // A gets n3 later
					fromA[2].set(0, true)
					holder = acquire(t, a, "k")
				}
				// n3 grants B at once. What B asks of the others is on its way until
				// A's key on n1 is gone.
				fromB[0].set(1500*time.Millisecond, false)
				fromB[1].set(1900*time.Millisecond, false)
				var rival *Lease
				tried := make(chan error)
				go func() {
					var err error
					rival, err = b.TryAcquire(context.Background(), "k")
					tried <- err
				}()
				synctest.Wait()
				if mem[2].holder("k") == "" || mem[2].holder("k") == holder.Token() {
					t.Fatal("n3 has not granted B")
				}
				mem[2].restart(false)
				fromA[2].set(0, false)
				if !healed {
					findOut(a)
					holder = acquire(t, a, "k")
				}
				holder.KeepAlive()
				time.Sleep(400 * time.Millisecond) // a renewal
				if heldOn(mem, "k", holder.Token()) != 3 {
					t.Fatalf("A holds %s", holders(mem, "k"))
				}
				fromA[0].set(0, true)
				until := time.Now().Add(holder.Remaining())
				err := <-tried
				if err == nil && (holder.Remaining() > 0 || time.Now().Before(until)) {
					t.Errorf("A holds the lock and B too: %v and %v are left", holder.Remaining(), rival.Remaining())
				}
				t.Logf("A has %v left, B %v: %v", holder.Remaining(), rival.Remaining(), err)
			})
		})
	}
}

// A wipe is a case of TestAForgottenLockGoesToNobodyBeforeItsTime: one of the two
// nodes that hold a lock restarts empty.
type wipe struct {
	fresh    bool          // who wants the lock starts after the restart
	nodeStep time.Duration // of the node's wall clock, right after it
	disturb  string        // what happens to the clock of who wants the lock
	extended bool          // the holder extends every second; otherwise it is cut off
	after    time.Duration // the acquire
	durable  bool          // the control: restarts are taken to lose nothing
}

func (w wipe) String() string {
	return fmt.Sprintf("fresh=%v node=%v client=%s extended=%v after=%v durable=%v", w.fresh, w.nodeStep, w.disturb, w.extended, w.after, w.durable)
}

// disturbances are what may happen to a client's clock.
var disturbances = map[string]func(c *clock.Skewed){
	"right":    func(*clock.Skewed) {},
	"+60s":     func(c *clock.Skewed) { c.Step(time.Minute) },
	"-60s":     func(c *clock.Skewed) { c.Step(-time.Minute) },
	"suspend":  func(c *clock.Skewed) { c.Suspend(time.Hour) },
	"too fast": func(c *clock.Skewed) { c.SetRate(1.008) },
}

// A lock that a node has forgotten goes to nobody else before its validity has
// ended, whatever clocks are set to, and the node votes again after MaxTTL.
func TestAForgottenLockGoesToNobodyBeforeItsTime(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		for _, nodeStep := range []time.Duration{0, -time.Minute, time.Minute} {
			if fresh && nodeStep > 0 {
				continue // it cannot know: Redis is to start after its clock is right
			}
			for disturb := range disturbances {
				for _, extended := range []bool{false, true} {
					for _, after := range []time.Duration{0, 3 * time.Second, 9800 * time.Millisecond} {
						w := wipe{fresh, nodeStep, disturb, extended, after, false}
						t.Run(w.String(), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								if early := w.run(t); early > 0 {
									t.Errorf("another had it %v before the end that was promised", early)
								}
							})
						})
					}
				}
			}
		}
	}
	t.Run("control", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if early := (wipe{disturb: "right", durable: true}).run(t); early <= 0 {
				t.Error("without quarantine the lock goes to nobody too: the test shows nothing")
			}
		})
	})
}

// run returns how long before the end that its holder was promised the lock went to
// another.
func (w wipe) run(t *testing.T) (early time.Duration) {
	const ttl = 10 * time.Second
	mem, nodes := memNodes(3)
	for _, n := range mem {
		n.lag = 300 * time.Microsecond
	}
	c := clock.NewSkewed(1)
	rival := func() *Locker {
		return newLocker(t, nodes, Config{TTL: ttl, MaxTTL: ttl, Clock: c, DurableNodes: w.durable})
	}
	var b *Locker
	if !w.fresh {
		b = rival()
		cycle(t, b, "other")
	}
	fromA, toA := ways(nodes)
	fromA[2].set(0, true) // so that nobody holds the lock there
	a := newLocker(t, toA, Config{TTL: ttl, MaxTTL: ttl})
	holder := acquire(t, a, "k")
	end := time.Now().Add(holder.Remaining())
	extend := func() {
		if w.extended && holder.Extend(t.Context(), ttl) == nil {
			end = time.Now().Add(holder.Remaining())
		}
	}
	for range w.after / time.Second {
		time.Sleep(time.Second)
		extend()
	}
	time.Sleep(w.after % time.Second)
	if holder.Remaining() == 0 || heldOn(mem[:2], "k", holder.Token()) != 2 || mem[2].size() != 0 {
		t.Fatal("A does not hold two of three")
	}

	mem[0].restart(false)
	mem[0].set(func(n *memNode) { n.step = w.nodeStep })
	wiped := time.Now()
	for _, way := range fromA {
		way.set(0, !w.extended || way == fromA[2])
	}
	if w.fresh {
		time.Sleep(1200 * time.Millisecond)
		b = rival()
	}
	for i := 0; ; i++ {
		lease, err := b.TryAcquire(t.Context(), "k")
		if err == nil {
			early = time.Until(end)
			lease.Release(t.Context())
			break
		}
		if !errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrHeld) || time.Since(wiped) > time.Minute {
			t.Fatalf("%v after the restart: %v", time.Since(wiped), err)
		}
		if i == 5 {
			disturbances[w.disturb](c)
			mem[0].cut() // it is met again, with another uptime
		}
		time.Sleep(200 * time.Millisecond)
		if i%5 == 0 {
			extend()
		}
	}
	away(mem[2])
	for i := 0; ; i++ { // now it takes the node that has restarted
		lease, err := b.TryAcquire(t.Context(), fmt.Sprint(i))
		if err == nil {
			lease.Release(t.Context())
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if took := time.Since(wiped); took > 14*time.Second || !w.durable && took < 11900*time.Millisecond {
		t.Errorf("the node votes %v after its restart, want 12 s and what it takes to notice", took)
	}
	return early
}
