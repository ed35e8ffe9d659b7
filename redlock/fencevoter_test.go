package redlock

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// forget makes a node lose everything, and come back counting from f, 0 for
// nothing. It is in quarantine then.
func (n *memNode) forget(key string, f fence.Token) {
	n.restart(false)
	if f > 0 {
		n.count(key, f)
	}
	time.Sleep(2*idlePing - time.Second) // connected again, and no PING is due
}

// What a node in quarantine has counted is not part of the fence; what others
// have, it is told.
func TestFenceIsNotTakenFromANodeInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Fenced: true, MaxTTL: 20 * time.Second})
		synctest.Wait()
		hour := fence.Token(time.Hour / time.Microsecond)
		mem[2].forget("k", micros()+hour)
		mem[0].set(func(n *memNode) { n.lag = time.Millisecond }) // it is not the last to answer
		lease := acquire(t, l, "k")
		if lease.Fence() != micros()-1000 {
			t.Errorf("fence %+d from the time of the attempt", lease.Fence()-micros()+1000)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Second)
		last := mem[2].counter("k")
		mem[0].set(func(n *memNode) { n.lag = 20 * time.Millisecond }) // it is one of the first two now
		if lease = acquire(t, l, "k"); lease.Fence() != last+1 {
			t.Errorf("after the quarantine: fence %+d from what it has counted", lease.Fence()-last)
		}
		time.Sleep(time.Second)
		if got := counters(mem, "k", lease.Fence()); got != "+0 +0 +0" {
			t.Errorf("counters %s", got)
		}
	})
}

func TestNodeInQuarantineIsStamped(t *testing.T) {
	for name, ahead := range map[string][]int{
		"when a quorum agrees at once": {0, 0, 0, 0, 0},
		"when none does":               {1, 2, 3, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, _ := fencedNodes(t, Config{}, ahead, []int{10, 10, 10, 10, 30})
				for _, n := range mem[3:] {
					n.set(func(n *memNode) { n.step = -time.Hour }) // so that it does not follow the proposal
					n.forget("k", 0)
				}
				lease := acquire(t, l, "k")
				time.Sleep(time.Second)
				if got := counters(mem, "k", lease.Fence()); got != "+0 +0 +0 +0 +0" {
					t.Errorf("counters %s", got)
				}
				if mem[3].carried(OpStamp) != 1 || mem[4].carried(OpStamp) != 1 {
					t.Errorf("%d and %d stamps", mem[3].carried(OpStamp), mem[4].carried(OpStamp))
				}
			})
		})
	}
}

// A node in quarantine may have granted the very same fence, and forgotten it.
func TestNodeInQuarantineDoesNotCountForTheFence(t *testing.T) {
	for name, fourth := range map[string]fence.Token{"with the same": 3 * minute, "with less, stamped": minute, "with nothing, stamped": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, base := fencedNodes(t, Config{}, []int{3, 2, 1, 0, 0}, []int{10, 10, 12, 10, 0})
				takeDown(mem[4:], errors.New("connection refused"))
				if fourth > 0 {
					fourth += base
				}
				mem[3].forget("k", fourth)
				time.AfterFunc(5*time.Millisecond, func() { mem[2].vanish("k") })
				began := time.Now()
				lease, err := l.TryAcquire(t.Context(), "k")
				if took := time.Since(began); took != 24*time.Millisecond {
					t.Errorf("it took %v, and was decided after two round trips", took)
				}
				var quarantined *QuarantineError
				var failure *AttemptError
				if !errors.Is(err, ErrNoQuorum) || !errors.As(err, &failure) || !errors.As(failure.Votes[3].Err, &quarantined) {
					t.Fatalf("%v with fence %+d, want ErrNoQuorum and the quarantine", err, lease.Fence()-base)
				}
				if got, want := fmt.Sprint(failure.Votes[0].Vote, failure.Votes[1].Vote, failure.Votes[2].Vote), "granted granted unknown"; got != want {
					t.Errorf("votes %s, want %s", got, want)
				}
				time.Sleep(time.Second)
				if got := mem[3].counter("k") - base; got != 3*minute+1 {
					t.Errorf("the node in quarantine has counted up to %+d: the test shows nothing", got)
				}
			})
		})
	}
}

// All nodes forget everything, at once: the clock goes on where they have stopped.
func TestFencesRiseThoughAllNodesHaveForgottenThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{Fenced: true, TTL: time.Second, MaxTTL: 2 * time.Second})
		var last fence.Token
		for range 5 {
			for range 100 { // no time goes by, so they get ahead of it
				lease := acquire(t, l, "k")
				if lease.Fence() <= last {
					t.Fatalf("fence %d after %d", lease.Fence(), last)
				}
				last = lease.Fence()
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for _, n := range mem {
				n.restart(false)
			}
			l.Inspect(t.Context(), "k") // so that it notices
			time.Sleep(time.Second)
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) || quarantinedIn(err) < 3 {
				t.Errorf("right after: %v, want ErrNoQuorum and the quarantines", err)
			}
			time.Sleep(6 * time.Second)
		}
	})
}

// The lease's key is given back to a node that has lost it together with the
// fence, and nothing of that lets the fences of others fall behind.
func TestHealedNodeKnowsTheFence(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(n *memNode)
		want string
	}{
		"all is lost":        {func(n *memNode) { n.restart(false) }, "+0 +0 +0"},
		"the key is":         {func(n *memNode) { n.vanish("k") }, "+0 +0 +1"},
		"all, in the past":   {func(n *memNode) { n.restart(false); n.set(func(n *memNode) { n.step = -time.Hour }) }, "+0 +0 +0"},
		"all, in the future": {func(n *memNode) { n.restart(false); n.set(func(n *memNode) { n.step = time.Hour }) }, "+0 +0 +0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{Fenced: true, TTL: 20 * time.Second})
				lease := acquire(t, l, "k")
				f := lease.Fence()
				synctest.Wait()
				test.lose(mem[2])
				time.Sleep(2 * idlePing)
				if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if got := counters(mem, "k", f); got != test.want || heldOn(mem, "k", lease.Token()) != 3 {
					t.Errorf("counters %s, want %s; held %s", got, test.want, holders(mem, "k"))
				}
				if lease.Fence() != f {
					t.Errorf("fence %d, was %d", lease.Fence(), f)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if next := acquire(t, l, "k"); next.Fence() <= f {
					t.Errorf("the next has fence %d after %d", next.Fence(), f)
				}
			})
		})
	}
}
