package redlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// timerClock knows which of its timers have yet to fire.
type timerClock struct {
	clock.Clock
	mu  sync.Mutex // guards due
	due map[*knownTimer]time.Time
}

type knownTimer struct {
	clock.Timer
	of *timerClock
}

func (c *timerClock) NewTimer(d time.Duration) clock.Timer {
	t := &knownTimer{c.Clock.NewTimer(d), c}
	t.note(d)
	return t
}

func (t *knownTimer) note(d time.Duration) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.due[t] = time.Now().Add(d)
}

func (t *knownTimer) Reset(d time.Duration) {
	t.note(d)
	t.Timer.Reset(d)
}

func (t *knownTimer) Stop() {
	t.of.mu.Lock()
	delete(t.of.due, t)
	t.of.mu.Unlock()
	t.Timer.Stop()
}

// running is how many timers have yet to fire. The others are forgotten.
func (c *timerClock) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t, due := range c.due {
		if !due.After(time.Now()) {
			delete(c.due, t)
		}
	}
	return len(c.due)
}

// reachable is how much memory is in use.
func reachable() int64 {
	runtime.GC()
	runtime.GC() // what a pool held goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// forgetLogs empties what nodes in memory remember of their work.
func forgetLogs(mem []*memNode) {
	for _, n := range mem {
		n.set(func(n *memNode) { n.log = nil })
	}
}

// Waits that end, in time or early, leave no timer, no memory and no place in any
// line.
//
// field-reports: 91
func TestWaitsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		c := &timerClock{Clock: clock.NewSkewed(1), due: map[*knownTimer]time.Time{}}
		l := newLocker(t, nodes, Config{Clock: c, Backoff: func(int) time.Duration { return time.Millisecond }})
		steal(mem)
		wait := func(budget, cancelAfter time.Duration, want error) {
			ctx, cancel := context.WithTimeout(t.Context(), budget)
			defer cancel()
			defer time.AfterFunc(cancelAfter, cancel).Stop()
			if _, err := l.Acquire(ctx, "k"); !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
		}
		run := func(rounds int) {
			for range rounds {
				for range 5 {
					wait(10*time.Millisecond, time.Hour, context.DeadlineExceeded)
				}
				wait(time.Hour, time.Millisecond, context.Canceled)
			}
			synctest.Wait()
			forgetLogs(mem)
		}
		run(20)
		timers, before := c.running(), reachable()
		run(400)
		if n := c.running(); n > timers {
			t.Errorf("%d timers are running, %d before", n, timers)
		}
		if grown := reachable() - before; grown > 1<<20 {
			t.Errorf("%d bytes more than before", grown)
		}
		if n := len(l.line.spots); n > 0 {
			t.Errorf("%d lines", n)
		}
	})
}

// Whatever a Locker keeps by key goes with the last lease on the key.
//
// field-reports: 93
func TestNoStateIsKeptPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		name := 0
		run := func(names int) {
			for range names {
				name++
				lease := acquire(t, l, fmt.Sprint(name))
				if name%10 > 0 { // the others run out
					lease.Release(t.Context())
				}
			}
			time.Sleep(2 * time.Second)
			vanish(mem)
			forgetLogs(mem)
		}
		run(1000)
		before := reachable()
		run(10_000)
		if grown := reachable() - before; grown > 1<<20 {
			t.Errorf("%d bytes more than before", grown)
		}
		l.line.mu.Lock()
		defer l.line.mu.Unlock()
		l.keeper.mu.Lock()
		defer l.keeper.mu.Unlock()
		lane := l.lanes[0]
		lane.mu.Lock()
		defer lane.mu.Unlock()
		if len(l.line.spots) != 0 || len(l.keeper.due) != 0 || len(lane.queue) != 0 || len(lane.debts) != 0 {
			t.Errorf("%d in the line, %d watched, %d queued, %d owed", len(l.line.spots), len(l.keeper.due), len(lane.queue), len(lane.debts))
		}
	})
}

// Two thousand leases are renewed in time though nodes take 200 ms to answer, over
// one connection per node.
//
// field-reports: 104
func TestManyLeasesOnSlowNodesAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 3 * time.Second, NodeTimeout: 750 * time.Millisecond})
		synctest.Wait()
		var leases []*Lease
		for i := range 2000 {
			lease := acquire(t, l, fmt.Sprint(i))
			lease.KeepAlive()
			leases = append(leases, lease)
		}
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 200 * time.Millisecond })
		}
		time.Sleep(5 * time.Second)
		for _, lease := range leases {
			if lease.Remaining() == 0 {
				t.Fatalf("%s: %v", lease.Key(), lease.reason())
			}
		}
		for _, n := range mem {
			if n.connections() != 1 || n.carried(OpExtend) < 2*len(leases) {
				t.Errorf("%s: %d connections, %d extends", n, n.connections(), n.carried(OpExtend))
			}
		}
	})
}
