package redlock

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// kept is a lease on "k" that is kept alive, once all nodes have answered.
func kept(t testing.TB, l *Locker) *Lease {
	t.Helper()
	lease := acquire(t, l, "k")
	lease.KeepAlive()
	synctest.Wait()
	return lease
}

// A node that has lost the key has it again after the next renewal, and counts:
// at once if restarts are taken to lose nothing, and otherwise when it is out of
// quarantine.
//
// field-reports: 54
func TestAWipedNodeIsHealedByTheNextRenewal(t *testing.T) {
	for name, durable := range map[string]bool{"durable": true, "not durable": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second, DurableNodes: durable})
				lease := kept(t, l)
				mem[0].restart(false)
				findOut(l)
				time.Sleep(400 * time.Millisecond)
				if mem[0].holder("k") != lease.Token() {
					t.Fatal("it has no key")
				}
				if !durable {
					time.Sleep(12 * time.Second)
				}
				away(mem[1])
				time.Sleep(5 * time.Second)
				if lease.Remaining() == 0 {
					t.Errorf("it does not count: %v", lease.reason())
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if mem[0].size() > 0 {
					t.Error("the release did not reach it")
				}
			})
		})
	}
}

// Restarts one after the other add up to nothing, however many there are.
//
// field-reports: 54
func TestALeaseOutlivesAllNodesOneByOne(t *testing.T) {
	for name, c := range map[string]struct {
		durable bool
		every   time.Duration
	}{
		"durable":     {true, 700 * time.Millisecond},
		"not durable": {false, 13 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second, DurableNodes: c.durable})
				rival := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second, DurableNodes: c.durable})
				lease := kept(t, l)
				for i := range 15 {
					mem[i%5].restart(false)
					for until := time.Now().Add(c.every); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
						if _, err := rival.TryAcquire(t.Context(), "k"); err == nil {
							t.Fatalf("another has it after %d restarts", i+1)
						}
					}
					if lease.Remaining() == 0 {
						t.Fatalf("lost after %d restarts: %v", i+1, lease.reason())
					}
					if got := heldOn(mem, "k", lease.Token()); got != 5 {
						t.Errorf("held on %d of 5 after %d restarts", got, i+1)
					}
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				for _, n := range mem {
					if n.size() > 0 {
						t.Errorf("%s keeps the key", n)
					}
				}
			})
		})
	}
}

// A call of Extend heals as a renewal does, also a node that was away when the
// lock was acquired, and the key lasts there as long as elsewhere.
func TestExtendHeals(t *testing.T) {
	for name, c := range map[string]struct {
		before func(n *memNode)
		after  func(n *memNode)
	}{
		"wiped": {func(*memNode) {}, func(n *memNode) { n.restart(false) }},
		"away when it was acquired": {
			func(n *memNode) { n.refuse = errors.New("refused") },
			func(n *memNode) { n.set(func(n *memNode) { n.refuse = nil }) },
		},
		"the key expired there": {func(*memNode) {}, func(n *memNode) { vanish([]*memNode{n}) }},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, durable %v", name, durable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, nodes := memNodes(3)
					c.before(mem[0])
					l := newLocker(t, nodes, Config{TTL: 10 * time.Second, DurableNodes: durable})
					lease := acquire(t, l, "k")
					synctest.Wait()
					c.after(mem[0])
					findOut(l)
					time.Sleep(100 * time.Millisecond)
					before := acquires(mem[0], "k")
					for range 3 {
						if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
						if mem[0].holder("k") != lease.Token() {
							t.Fatal("it has no key")
						}
						mem[0].set(func(n *memNode) {
							if left := time.Until(n.keys["k"].until); left != 20*time.Second {
								t.Errorf("it has it for %v", left)
							}
						})
					}
					if n := acquires(mem[0], "k") - before; n != 1 {
						t.Errorf("healed %d times", n)
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if mem[0].size() > 0 {
						t.Error("the release did not reach it")
					}
				})
			})
		}
	}
}

// What is given back in a round does not count in it.
func TestHealingDoesNotSaveALeaseThatAMajorityHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: time.Second, DurableNodes: true})
		lease := kept(t, l)
		for _, n := range mem[:3] {
			n.restart(false)
		}
		findOut(l)
		time.Sleep(500 * time.Millisecond)
		if !errors.Is(lease.reason(), ErrLost) {
			t.Fatalf("three of five have lost it, and it is held: %v left", lease.Remaining())
		}
		time.Sleep(2 * time.Second)
		for _, n := range mem[:3] {
			if acquires(n, "k") != 1 {
				t.Errorf("%s was given the key of a lost lease", n)
			}
		}
	})
}

// acquires is how many acquires of key a node has carried out.
func acquires(n *memNode, key string) (count int) {
	for _, op := range n.history() {
		if op.Kind == OpAcquire && op.Key == key {
			count++
		}
	}
	return count
}

// A round without a quorum gives nothing back: whether the lease is still held by
// one is not known.
func TestNothingIsHealedWithoutAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 10 * time.Second, DurableNodes: true})
		lease := acquire(t, l, "k")
		synctest.Wait()
		mem[0].restart(false)
		away(mem[1])
		findOut(l)
		if err := lease.Extend(t.Context(), 10*time.Second); !errors.Is(err, ErrNoQuorum) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if mem[0].size() > 0 {
			t.Error("it was given the key")
		}
		mem[1].set(func(n *memNode) { n.refuse = nil })
		time.Sleep(200 * time.Millisecond)
		if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if mem[0].holder("k") != lease.Token() {
			t.Error("it has no key")
		}
	})
}

// A node that somebody else has taken meanwhile stays theirs.
func TestHealingLeavesAnothersKey(t *testing.T) {
	for name, when := range map[string]time.Duration{
		"before the extension":        0,
		"between it and what follows": 30 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{TTL: 10 * time.Second, DurableNodes: true})
				lease := acquire(t, l, "k")
				synctest.Wait()
				mem[0].set(func(n *memNode) { n.keys = map[string]memKey{}; n.late = 20 * time.Millisecond })
				steal := func() { mem[0].steal("k", time.Hour) }
				if when == 0 {
					steal()
				} else {
					time.AfterFunc(when, steal) // the acquire comes at 40 ms
				}
				for range 2 {
					if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
						t.Fatal(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if sent := acquires(mem[0], "k") > 1; sent != (when > 0) {
					t.Fatalf("healing was tried: %v", sent)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond)
				if got := mem[0].holder("k"); got != "somebody-else" {
					t.Errorf("it holds %q now", got)
				}
			})
		})
	}
}

// A healed node knows the lease's fence, whatever its own clock allows: who
// acquires next gets a larger one from every quorum.
func TestAHealedNodeHasTheLeasesFence(t *testing.T) {
	for _, step := range []time.Duration{-time.Minute, 0, time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: time.Second, Fenced: true})
				lease := kept(t, l)
				mem[0].restart(false)
				mem[0].set(func(n *memNode) { n.step = step })
				time.Sleep(6 * time.Second) // out of quarantine again
				if mem[0].holder("k") != lease.Token() {
					t.Fatal("it was not healed")
				}
				mem[0].set(func(n *memNode) {
					if got := n.counters[counterOf("k")]; got != lease.Fence() {
						t.Errorf("it is at %d, the lease's fence is %d", got, lease.Fence())
					}
				})
				lease.Release(t.Context())
				away(mem[2])
				findOut(l)
				if next := acquire(t, l, "k").Fence(); next <= lease.Fence() {
					t.Errorf("the next fence is %d, after %d", next, lease.Fence())
				}
			})
		})
	}
}

// An acquire that may still be carried out is not followed by another on the same
// node: the release that undoes the second would leave the first.
func TestANodeIsHealedOnlyOnceItsAcquireIsSettled(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		before  call
		haunted bool
		reason  error
		want    bool
	}{
		"queued":                  {before: call{state: queued}},
		"written":                 {before: call{state: written, gen: 2}},
		"answered":                {before: call{state: answered, gen: 2}, want: true},
		"withdrawn":               {before: call{state: withdrawn}, want: true},
		"cut off":                 {before: call{state: answered, gen: 2, cutOff: true}},
		"cut off, killed since":   {before: call{state: answered, gen: 1, cutOff: true}, want: true},
		"cut off, at large":       {before: call{state: answered, gen: 1, cutOff: true}, haunted: true},
		"answered, then at large": {before: call{state: answered, gen: 1}, haunted: true, want: true},
		"down":                    {before: call{state: answered, gen: 2}, reason: refused},
	} {
		l := newLane(newMemNode(1), clock.NewSkewed(1), laneTimes{stall: time.Hour}, voter{})
		l.gen, l.haunted, l.state, l.reason = 2, c.haunted, open, c.reason
		if c.reason != nil {
			l.state = down
		}
		got := l.restore(&call{op: &Op{Kind: OpAcquire}}, &c.before, l.clock.Now())
		if got != c.want || (len(l.queue) == 1) != c.want {
			t.Errorf("%s: %v, and %d calls are queued, want %v", name, got, len(l.queue), c.want)
		}
	}
}
