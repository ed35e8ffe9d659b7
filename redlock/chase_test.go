package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// passing has a lock go from hand to hand among others, every 10 ms, until the
// returned function is called. It is then free.
func passing(mem []*memNode, key string) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	hands := 0
	hand := func() {
		hands++
		for _, n := range mem {
			n.set(func(n *memNode) { n.keys[key] = memKey{Token(fmt.Sprint("hand ", hands)), time.Now().Add(time.Hour)} })
		}
	}
	hand()
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				hand()
			case <-stop:
				for _, n := range mem {
					n.set(func(n *memNode) { delete(n.keys, key) })
				}
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// steady is a back-off in which each attempt meets another holder.
func steady(int) time.Duration { return 13 * time.Millisecond }

// wait is for "k".
func wait(t *testing.T, l *Locker) *Lease {
	lease, err := l.Acquire(t.Context(), "k")
	if err != nil {
		t.Error(err)
		panic(err)
	}
	return lease
}

// Who waits for a lock that passes from hand to hand asks one node, and the same one
// as others do, mostly; it asks all as soon as that one grants.
func TestWhoIsPassedOverAsksOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		end := passing(mem, "k")
		var waiting sync.WaitGroup
		for range 2 {
			l := newLocker(t, nodes, Config{Backoff: steady})
			waiting.Go(func() {
				lease := wait(t, l)
				synctest.Wait()
				if n := heldOn(mem, "k", lease.Token()); n < 3 {
					t.Errorf("held on %d of 5 nodes: a rival may have the gate, and no more", n)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(3 * time.Second) // 200 attempts each
		var counts []int
		for _, n := range mem {
			counts = append(counts, n.carried(OpAcquire))
		}
		slices.Sort(counts)
		if most, others := counts[4], counts[3]; most < 300 || others > most/2 || counts[2]+counts[3] < 50 {
			t.Errorf("the nodes were asked %v times: want one of them mostly, and the others now and then", counts)
		}
		end()
		waiting.Wait()
	})
}

// A lock that one holder keeps may have lost its quorum meanwhile, and one node knows
// nothing of that: all are asked.
func TestWhoWaitsForOneHolderAsksAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		steal(mem)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newLocker(t, nodes, Config{Backoff: steady}).Acquire(ctx, "k")
		var failure *AttemptError
		if !errors.As(err, &failure) || !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		asked := 0
		for _, n := range mem {
			asked += n.carried(OpAcquire)
		}
		// The others are taken back once a majority has said no.
		if asked < 3*failure.Attempts {
			t.Errorf("nodes were asked %d times in %d attempts, want 3 each time at least", asked, failure.Attempts)
		}
	})
}

// The validity of a lease counts from before its first request, which went to the
// gate: there the key is oldest.
func TestValidityCountsFromTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 20 * time.Millisecond })
		}
		l := newLocker(t, nodes, Config{Backoff: steady})
		gated := 0
		for range 20 {
			end := passing(mem, "k")
			won := make(chan *Lease, 1)
			go func() { won <- wait(t, l) }()
			time.Sleep(time.Second)
			end()
			lease := <-won
			ends := make([]time.Time, len(mem))
			for i, n := range mem {
				n.set(func(n *memNode) { ends[i] = n.keys["k"].until })
			}
			slices.SortFunc(ends, time.Time.Compare)
			if ends[4].Sub(ends[0]) >= 20*time.Millisecond {
				gated++
			}
			if over := time.Now().Add(lease.Remaining()); over.After(ends[0].Add(-l.cfg.Drift.Over(l.ttl))) {
				t.Errorf("relied on until %v, and gone from the gate at %v", over, ends[0])
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if gated == 0 {
			t.Error("none was won through a gate: the test shows nothing")
		}
	})
}

// A gate that falls silent does not keep those who wait from asking the others.
func TestASilentGateIsPassedBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		end := passing(mem, "k")
		l := newLocker(t, nodes, Config{Backoff: steady})
		won := make(chan *Lease, 1)
		go func() { won <- wait(t, l) }()
		time.Sleep(time.Second)
		gate := slices.MaxFunc(mem, func(a, b *memNode) int { return a.carried(OpAcquire) - b.carried(OpAcquire) })
		resume := gate.stop()
		end()
		begun := time.Now()
		lease := <-won
		if waited := time.Since(begun); waited > 200*time.Millisecond {
			t.Errorf("won %v after the lock was free", waited)
		}
		resume()
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Where too few nodes vote, a gate that denies does not pass that off as another's
// lock.
func TestAGateHidesNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		end := passing(mem, "k")
		l := newLocker(t, nodes, Config{Backoff: steady})
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Duration(i)*13*time.Millisecond)
			time.AfterFunc(500*time.Millisecond, func() {
				for _, n := range mem[1:] {
					n.set(func(n *memNode) { n.fail = errors.New("OOM command not allowed") })
				}
			})
			_, err := l.Acquire(ctx, "k")
			cancel()
			if errors.Is(err, ErrHeld) || !errors.Is(err, ErrNoQuorum) {
				t.Error(err)
			}
			for _, n := range mem[1:] {
				n.set(func(n *memNode) { n.fail = nil })
			}
		}
		end()
	})
}

// What ends in front of the gate says so. One attempt in eight asks all nodes; the last
// one is not always such.
func TestAWaitThatEndsAtTheGateSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		defer passing(mem, "k")()
		l := newLocker(t, nodes, Config{Backoff: steady})
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Duration(i)*steady(0))
			_, err := l.Acquire(ctx, "k")
			cancel()
			var failure *AttemptError
			if !errors.As(err, &failure) || !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			denied, notAsked := 0, 0
			for _, v := range failure.Votes {
				switch {
				case v.Vote == quorum.Denied && v.Holder != "":
					denied++
				case v.Vote == quorum.Unsent && errors.Is(v.Err, errNotAsked):
					notAsked++
				}
			}
			if denied == 1 && notAsked == 4 {
				return
			}
		}
		t.Error("no wait has ended at the gate, or none says so")
	})
}
