package redlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// counter is what the node has counted for key, 0 if nothing.
func (n *memNode) counter(key string) fence.Token {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters[counterOf(key)]
}

// count makes the node have counted up to f.
func (n *memNode) count(key string, f fence.Token) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters[counterOf(key)] = f
}

// vanish makes the node lose key, and keep its counter.
func (n *memNode) vanish(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.keys, key)
}

// counters are what all nodes have counted, as distances from f.
func counters(mem []*memNode, key string, f fence.Token) string {
	var all []string
	for _, n := range mem {
		all = append(all, fmt.Sprintf("%+d", n.counter(key)-f))
	}
	return strings.Join(all, " ")
}

// stamps is how many stamps the nodes have carried out, together.
func stamps(mem []*memNode) (count int) {
	for _, n := range mem {
		count += n.carried(OpStamp)
	}
	return count
}

// micros is the wall clock of a bubble as a fence.
func micros() fence.Token { return fence.Token(time.Now().UnixMicro()) }

// minute is one in the unit of fences.
const minute = fence.Token(time.Minute / time.Microsecond)

// fencedNodes are nodes of a Locker with fences that have counted different
// numbers for the key k: the ith node so many minutes into the future, so that no
// proposal is as high. Their answers come after as many milliseconds as said.
func fencedNodes(t *testing.T, cfg Config, ahead, lags []int) ([]*memNode, *Locker, fence.Token) {
	t.Helper()
	mem, nodes := memNodes(len(ahead))
	cfg.Fenced = true
	l := newLocker(t, nodes, cfg)
	synctest.Wait()
	base := micros()
	for i, n := range mem {
		if ahead[i] > 0 {
			n.count("k", base+fence.Token(ahead[i])*minute)
		}
		n.set(func(n *memNode) { n.lag = time.Duration(lags[i]) * time.Millisecond })
	}
	return mem, l, base
}

func TestFenceTakesOneRoundTripWhenAQuorumAgrees(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7} {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(n)
			l := newLocker(t, nodes, Config{Fenced: true})
			synctest.Wait()
			for _, n := range mem {
				n.set(func(n *memNode) { n.lag = 10 * time.Millisecond })
			}
			for range 3 {
				began := time.Now()
				lease := acquire(t, l, "k")
				if took := time.Since(began); took != 10*time.Millisecond {
					t.Errorf("N=%d: it took %v, want one round trip, 10ms", n, took)
				}
				if want := fence.Token(began.UnixMicro()); lease.Fence() != want {
					t.Errorf("N=%d: fence %d, want the time of the attempt, %d", n, lease.Fence(), want)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if want := strings.TrimSpace(strings.Repeat(" +0", n)); counters(mem, "k", lease.Fence()) != want {
					t.Errorf("N=%d: counters %s", n, counters(mem, "k", lease.Fence()))
				}
			}
			if n := stamps(mem); n != 0 {
				t.Errorf("%d stamps", n)
			}
		})
	}
}

func TestFenceTakesTwoRoundTripsWhenNoQuorumAgrees(t *testing.T) {
	for _, test := range []struct {
		ahead, lags []int
		fence       int // how many minutes ahead the counter it comes from was
		stamps      int // that are waited for
		took        int // ms
	}{
		{[]int{1, 2}, []int{10, 10}, 2, 1, 20},
		{[]int{3, 2, 1}, []int{10, 10, 30}, 3, 1, 20},
		{[]int{3, 0, 0, 0, 0}, []int{10, 10, 10, 30, 30}, 3, 2, 20}, // two agree, on less
		{[]int{3, 2, 1, 0, 0}, []int{10, 10, 10, 40, 40}, 3, 2, 20},
		{[]int{1, 2, 2, 0, 0}, []int{10, 10, 10, 40, 40}, 2, 1, 20},
		{[]int{1, 2, 1, 2, 0}, []int{10, 10, 10, 15, 40}, 2, 2, 20}, // the fourth comes as high by itself
		{[]int{1, 2, 3, 4, 5}, []int{10, 10, 10, 40, 40}, 3, 2, 20}, // late ones, above it
		{[]int{3, 2, 0, 0, 0}, []int{5, 14, 14, 14, 14}, 3, 2, 28},  // one of which is early
	} {
		t.Run(fmt.Sprint(test.ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, base := fencedNodes(t, Config{}, test.ahead, test.lags)
				began := time.Now()
				lease := acquire(t, l, "k")
				if took := time.Since(began); took != time.Duration(test.took)*time.Millisecond {
					t.Errorf("it took %v, want two round trips, %d ms", took, test.took)
				}
				want := base + fence.Token(test.fence)*minute + 1
				if lease.Fence() != want {
					t.Errorf("fence %d, want %d, the largest that a node came to", lease.Fence(), want)
				}
				if n := stamps(mem); n < test.stamps {
					t.Errorf("returned after %d stamps, want %d", n, test.stamps)
				}
				time.Sleep(time.Second)
				for i, n := range mem {
					want := lease.Fence()
					if test.ahead[i] > test.fence {
						want = base + fence.Token(test.ahead[i])*minute + 1 // it stays above
					}
					if n.counter("k") != want {
						t.Errorf("in the end node %d is %+d from the fence", i+1, n.counter("k")-lease.Fence())
					}
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Once a quorum is at the fence nobody waits for the others, which are told all
// the same: the next attempt is to find all nodes agreed.
func TestNodesBelowTheFenceAreStampedWithoutAnybodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{Fenced: true})
		synctest.Wait()
		for i, lag := range []time.Duration{time.Millisecond, 200 * time.Millisecond} {
			mem[3+i].set(func(n *memNode) {
				n.lag = lag
				n.step = -time.Hour // it does not follow the proposal so far
			})
		}
		lease := acquire(t, l, "k")
		if lease.Fence() != micros() {
			t.Errorf("fence %d, want %d", lease.Fence(), micros())
		}
		time.Sleep(100 * time.Millisecond)
		const behind = int64(time.Hour/time.Microsecond) - 1e6
		if got, want := counters(mem, "k", lease.Fence()), fmt.Sprintf("+0 +0 +0 +0 -%d", behind); got != want {
			t.Errorf("before the late answer: %s, want %s", got, want)
		}
		time.Sleep(time.Second)
		if got, want := counters(mem, "k", lease.Fence()), "+0 +0 +0 +0 +0"; got != want {
			t.Errorf("after the late answer: %s, want %s", got, want)
		}
		if n := stamps(mem); n != 2 {
			t.Errorf("%d stamps, want 2", n)
		}
	})
}

// A stamp on a key that is not the attempt's any more counts for nothing: somebody
// else may have made that counter what it is.
//
// field-reports: 26
func TestStampOfALostKeyDoesNotCount(t *testing.T) {
	for name, lose := range map[string]func(n *memNode){
		"gone":      func(n *memNode) { n.vanish("k") },
		"another's": func(n *memNode) { n.steal("k", time.Minute) },
		"another's, who came to the same": func(n *memNode) {
			n.steal("k", time.Minute)
			n.count("k", n.counter("k")+minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, base := fencedNodes(t, Config{}, []int{1, 2, 0}, []int{10, 10, 0})
				takeDown(mem[2:], errors.New("connection refused"))
				time.Sleep(time.Second)
				lost := make(chan fence.Token, 1)
				time.AfterFunc(5*time.Millisecond, func() {
					lose(mem[0])
					lost <- mem[0].counter("k")
				})
				began := time.Now()
				lease, err := l.TryAcquire(t.Context(), "k")
				if !errors.Is(err, ErrNoQuorum) {
					t.Fatalf("%v with fence %+d, want ErrNoQuorum", err, lease.Fence()-base)
				}
				if took := time.Since(began); took != 20*time.Millisecond {
					t.Errorf("it took %v, want two round trips", took)
				}
				var failure *AttemptError
				want := quorum.Denied
				if name == "gone" { // nobody holds it
					want = quorum.Unknown
				}
				if !errors.As(err, &failure) || failure.Votes[0].Vote != want || failure.Votes[1].Vote != quorum.Granted {
					t.Errorf("votes %v", err)
				}
				time.Sleep(time.Second)
				was := <-lost
				if mem[0].carried(OpStamp) != 1 || mem[0].counter("k") != was {
					t.Errorf("%d stamps took the counter of a lost key %+d further", mem[0].carried(OpStamp), mem[0].counter("k")-was)
				}
				if mem[1].size() != 0 {
					t.Errorf("left: %s", holders(mem, "k"))
				}
			})
		})
	}
}

// A grant that comes after the fence was chosen, from a node whose counter was
// higher, is the lock and no vote for the fence.
func TestGrantAboveTheFenceIsNoVoteForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, l, base := fencedNodes(t, Config{}, []int{1, 2, 3}, []int{10, 10, 30})
		time.AfterFunc(5*time.Millisecond, func() { mem[0].vanish("k") })
		lease, err := l.TryAcquire(t.Context(), "k")
		if !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("%v with fence %+d, want ErrNoQuorum", err, lease.Fence()-base)
		}
		if !strings.Contains(err.Error(), errAbove.Error()) {
			t.Errorf("the error does not say why: %v", err)
		}
		time.Sleep(time.Second)
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left: %s", got)
		}
	})
}
