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

// cycle is one acquire and release of key.
func cycle(t testing.TB, l *Locker, key string) {
	t.Helper()
	lease, err := l.TryAcquire(context.Background(), key)
	if err != nil {
		t.Error(err)
		return
	}
	if err := lease.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// runLane is a lane by itself, that bears with its node for so long. It ends with the
// test.
func runLane(t testing.TB, n Node, c clock.Clock, patience time.Duration) *lane {
	l := newLane(n, c, laneTimes{late: patience, stall: patience, limit: patience}, voter{})
	l.met, l.changed, l.claim = func(bool) {}, func(NodeEvent) {}, func(string) error { return nil }
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { l.run(ctx) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	return l
}

// field-reports: 100
func TestHungNodeCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{})
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 10 * time.Millisecond })
		}
		const callers = 256
		// run lets all callers cycle for d, and returns how many goroutines the
		// Locker had while they did.
		run := func(d time.Duration) int {
			until := time.Now().Add(d)
			var wg sync.WaitGroup
			for w := range callers {
				wg.Go(func() {
					for time.Now().Before(until) {
						began := time.Now()
						cycle(t, l, fmt.Sprint(w))
						if took := time.Since(began); took > 50*time.Millisecond {
							t.Errorf("a cycle took %v", took)
						}
					}
				})
			}
			time.Sleep(d / 2)
			n := goroutines()
			wg.Wait()
			return n
		}
		healthy := run(time.Second / 2)
		mem[0].stop()
		hung := run(2 * time.Second)
		if hung > healthy {
			t.Errorf("%d goroutines with a hung node, %d without", hung, healthy)
		}
		lane := l.lanes[0]
		lane.mu.Lock()
		defer lane.mu.Unlock()
		if len(lane.queue) > 0 || len(lane.debts) > maxFlight {
			t.Errorf("%d calls queued and %d debts after 3 s of a hung node", len(lane.queue), len(lane.debts))
		}
	})
}

// TestNoPhantomAfterAStop is the rule that a release is never overtaken by its
// own acquire: a node that was stopped carries out, when it goes on, what lies
// in the sockets of connections that have long been given up. Without the kill,
// which is the control, those keys stay for their whole TTL.
func TestNoPhantomAfterAStop(t *testing.T) {
	phantoms := func(t *testing.T, prepare func(n *memNode)) (left int) {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			prepare(mem[0])
			l := newLocker(t, nodes, Config{TTL: 10 * time.Second, MaxTTL: 20 * time.Second})
			synctest.Wait()
			for i := range 30 {
				resume := mem[0].stop()
				key := fmt.Sprint("k", i)
				cycle(t, l, key)
				// Long enough for the lane to give its connection up, and for a
				// successor to be waiting.
				time.Sleep(6 * time.Second)
				resume()
				time.Sleep(200 * time.Millisecond)
				if mem[0].holder(key) != "" {
					left++
				}
			}
		})
		return left
	}
	if left := phantoms(t, func(*memNode) {}); left > 0 {
		t.Errorf("%d phantoms", left)
	}
	if left := phantoms(t, func(n *memNode) { n.killsNothing = true }); left == 0 {
		t.Error("no phantoms even without the kill: the test shows nothing")
	}
	// Where killing is not permitted, or the node does not tell whom to kill,
	// the release is repeated until the phantom is caught.
	if left := phantoms(t, func(n *memNode) { n.noKill = true }); left > 0 {
		t.Errorf("%d phantoms without permission to kill", left)
	}
	if left := phantoms(t, func(n *memNode) { n.shyPeer = true }); left > 0 {
		t.Errorf("%d phantoms on a node that tells no id", left)
	}
}

// Connection ids start anew when a node restarts: the old one may be a
// stranger's by now.
func TestRestartedNodeIsNotAskedToKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		// visit has every node asked, so that each notices what has become of its
		// connection, and gives it time to make another.
		visit := func() {
			l.Inspect(t.Context(), "k")
			time.Sleep(time.Second)
			synctest.Wait()
		}
		visit()
		mem[0].restart(false)
		visit()
		if mem[0].open() != 1 || len(mem[0].kills) > 0 {
			t.Errorf("%d connections, killed %v in the new process", mem[0].open(), mem[0].kills)
		}
		mem[1].set(func(n *memNode) { n.mute = 1 }) // a lost connection, the same process
		visit()
		if len(mem[1].kills) != 1 || mem[1].kills[0] != 1 {
			t.Errorf("killed %v, want the first connection", mem[1].kills)
		}
	})
}

// That a release's caller no longer waits does not make the release less due.
func TestReleaseOutlivesItsCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		lease := acquire(t, l, "k")
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 150 * time.Millisecond }) // a slow disk, no stall
		}
		for i := range 3 {
			go l.Inspect(context.Background(), fmt.Sprint(i)) // fills the connections
		}
		synctest.Wait()
		if err := lease.Release(t.Context()); !errors.Is(err, ErrNoQuorum) {
			t.Errorf("got %v, want ErrNoQuorum", err)
		}
		time.Sleep(time.Second)
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("nodes hold %s", got)
		}
	})
}

func TestReleaseThatCouldNotBeSentIsOwedUntilItCan(t *testing.T) {
	for name, outage := range map[string]func(n *memNode) (end func()){
		"hung": func(n *memNode) func() { return n.stop() },
		"refused": func(n *memNode) func() {
			takeDown([]*memNode{n}, errors.New("connection refused"))
			return func() { n.set(func(n *memNode) { n.refuse = nil }) }
		},
		"errors": func(n *memNode) func() {
			n.set(func(n *memNode) { n.fail = errors.New("BUSY") })
			return func() { n.set(func(n *memNode) { n.fail = nil }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{TTL: 30 * time.Second})
				var leases []*Lease
				for i := range maxFlight + 72 { // more than fit in a flight
					lease, err := l.TryAcquire(t.Context(), fmt.Sprint("k", i))
					if err != nil {
						t.Fatal(err)
					}
					leases = append(leases, lease)
				}
				synctest.Wait()
				end := outage(mem[0])
				for _, lease := range leases {
					if err := lease.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(3 * time.Second)
				if left := mem[0].size(); left != maxFlight+72 {
					t.Fatalf("%d keys during the outage, want %d", left, maxFlight+72)
				}
				end()
				time.Sleep(1500 * time.Millisecond)
				if left := mem[0].size(); left != 0 {
					t.Errorf("%d keys after the outage", left)
				}
			})
		})
	}
}

// A debt is dropped when its key has expired anyway, so that a node that stays
// away does not cost memory for ever.
func TestDebtsExpireWithTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 5 * time.Second})
		var leases []*Lease
		for i := range 100 {
			lease, err := l.TryAcquire(t.Context(), fmt.Sprint("k", i))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, lease)
		}
		synctest.Wait()
		takeDown(mem[:1], errors.New("connection refused"))
		for _, lease := range leases {
			lease.Release(t.Context())
		}
		debts := func() int {
			l.lanes[0].indebted()
			l.lanes[0].mu.Lock()
			defer l.lanes[0].mu.Unlock()
			return len(l.lanes[0].debts)
		}
		time.Sleep(time.Second)
		if got := debts(); got != 100 {
			t.Errorf("%d debts, want 100", got)
		}
		time.Sleep(5 * time.Second)
		if got := debts(); got != 0 {
			t.Errorf("%d debts after the TTL", got)
		}
	})
}

// A lane that has not yet made its first connection keeps a queue, which must
// not grow with what has come and gone.
func TestQueueOfAConnectingLaneStaysShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		mem[0].set(func(n *memNode) { n.silent = true })
		l := newLocker(t, nodes, Config{})
		for i := range 5000 {
			cycle(t, l, fmt.Sprint(i))
		}
		lane := l.lanes[0]
		lane.mu.Lock()
		defer lane.mu.Unlock()
		if lane.state != connecting {
			t.Fatal("the lane has given up: the test shows nothing")
		}
		if len(lane.queue) > 4*maxFlight {
			t.Errorf("%d calls queued, all of them withdrawn", len(lane.queue))
		}
	})
}

// Nothing that was queued for a hung node is sent after its attempt has ended.
func TestNothingIsSentLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		resume := mem[0].stop()
		go l.Inspect(context.Background(), "fills the connection")
		time.Sleep(60 * time.Millisecond)
		for i := range 100 {
			cycle(t, l, fmt.Sprint(i))
		}
		lease, err := l.TryAcquire(t.Context(), "held")
		if err != nil {
			t.Fatal(err)
		}
		resume()
		time.Sleep(time.Second)
		if got := mem[0].carried(OpAcquire); got != 1 {
			t.Errorf("%d acquires were carried out, want that of the lease that is still held", got)
		}
		if mem[0].holder("held") != lease.Token() {
			t.Error("the lease that is held is not on the node")
		}
		if got := mem[0].carried(OpRelease); got != 0 {
			t.Errorf("%d releases of what was never set", got)
		}
	})
}

// A caller who gives up says nothing about the node.
//
// field-reports: 62
func TestCancelledCallersDoNotTakeNodesOutOfService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{})
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 2 * time.Millisecond })
		}
		for i := range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := l.Acquire(ctx, fmt.Sprint(i)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want DeadlineExceeded", err)
			}
			cancel()
		}
		lease, err := l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if got := heldOn(mem, "k", lease.Token()); got != 5 {
			t.Errorf("%d of 5 nodes hold the key", got)
		}
		for _, n := range mem {
			if n.open() != 1 || n.size() != 1 {
				t.Errorf("%s: %d connections, %d keys", n, n.open(), n.size())
			}
		}
	})
}

func TestLaneKeepsItsIdleConnectionAndNoticesItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		var events []NodeEvent
		l := newLocker(t, nodes, Config{DurableNodes: true, Trace: &Trace{Node: func(e NodeEvent) { events = append(events, e) }}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if mem[0].open() != 1 || len(events) != 1 || !events[0].Up {
			t.Fatalf("%d connections, events %v", mem[0].open(), events)
		}
		mem[0].restart(true)
		time.Sleep(idlePing + time.Second)
		synctest.Wait()
		if len(events) != 3 || events[1].Up || events[1].Err == nil || !events[2].Up {
			t.Errorf("events %v", events)
		}
		cycle(t, l, "k")
	})
}
