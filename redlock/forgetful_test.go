package redlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
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
				cycle(t, a, "other")
				cycle(t, b, "other")
				synctest.Wait()

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
					cycle(t, a, "other") // A finds that n3 has restarted
					time.Sleep(laterPause)
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
