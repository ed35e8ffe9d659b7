package redlock

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

func TestLeaseIsHeldOnAllNodesAndGoneAfterRelease(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 15} {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(n)
			l := newLocker(t, nodes, Config{KeyPrefix: "lock:"})
			lease, err := l.TryAcquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := heldOn(mem, "lock:k", lease.Token()); got != n {
				t.Errorf("N=%d: %d nodes hold the key", n, got)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if got := heldOn(mem, "lock:k", lease.Token()); got != 0 {
				t.Errorf("N=%d: %d nodes hold the key after release", n, got)
			}
		})
	}
}

// The drift must be taken off, and the time of the attempt.
//
// field-reports: 3
func TestValidityIsTTLLessElapsedLessDrift(t *testing.T) {
	drift := clock.Drift{Rate: 0.01, Slack: 2 * time.Millisecond}
	for _, c := range []struct{ elapsed, want time.Duration }{
		{0, 988 * time.Millisecond},
		{100 * time.Millisecond, 888 * time.Millisecond},
		{987 * time.Millisecond, time.Millisecond},
		{988 * time.Millisecond, 0},
		{1500 * time.Millisecond, -512 * time.Millisecond},
	} {
		if got := validity(time.Second, c.elapsed, drift); got != c.want {
			t.Errorf("after %v: %v, want %v", c.elapsed, got, c.want)
		}
	}
}

func TestRemainingCountsFromBeforeTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond})
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 200 * time.Millisecond })
		}
		lease, err := l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := lease.Remaining(), 788*time.Millisecond; got != want {
			t.Errorf("remaining %v, want %v", got, want)
		}
		if got, want := lease.Until(), time.Now().Add(788*time.Millisecond); got.Sub(want).Abs() > time.Millisecond {
			t.Errorf("until %v, want %v", got, want)
		}
	})
}

// A quorum that comes when nothing is left of the validity is no lease. Only a
// clock that jumps can make an attempt that slow: NodeTimeout ends it before.
//
// field-reports: 3
func TestAttemptThatUsesUpItsValidityIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		c := clock.NewSkewed(1)
		l := newLocker(t, nodes, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond, Clock: c})
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 100 * time.Millisecond })
		}
		time.AfterFunc(50*time.Millisecond, func() { c.Suspend(time.Hour) })
		_, err := l.TryAcquire(t.Context(), "k")
		if !errors.Is(err, ErrTooSlow) {
			t.Errorf("got %v, want ErrTooSlow", err)
		}
		time.Sleep(time.Second / 2)
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// Held, no quorum and lost are different things.
//
// field-reports: 75
func TestFailuresAreToldApart(t *testing.T) {
	refused := errors.New("connection refused")
	for _, c := range []struct {
		name  string
		setUp func(mem []*memNode)
		want  error
		not   error
	}{
		{"majority held by another", func(m []*memNode) { steal(m[:3]) }, ErrHeld, ErrNoQuorum},
		{"all held by another", func(m []*memNode) { steal(m) }, ErrHeld, ErrNoQuorum},
		{"majority down", func(m []*memNode) { takeDown(m[:3], refused) }, ErrNoQuorum, ErrHeld},
		{"two held, one down", func(m []*memNode) { steal(m[:2]); takeDown(m[4:], refused) }, ErrNoQuorum, ErrHeld},
		{"three held, two down", func(m []*memNode) { steal(m[:3]); takeDown(m[3:], refused) }, ErrHeld, ErrNoQuorum},
		{"majority hangs", func(m []*memNode) {
			for _, n := range m[:3] {
				n.stop()
			}
		}, ErrNoQuorum, ErrHeld},
		{"majority answers with errors", func(m []*memNode) {
			for _, n := range m[:3] {
				n.set(func(n *memNode) { n.fail = errors.New("OOM command not allowed") })
			}
		}, ErrNoQuorum, ErrHeld},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{})
				synctest.Wait()
				c.setUp(mem)
				time.Sleep(time.Second) // connections notice
				_, err := l.TryAcquire(t.Context(), "k")
				if !errors.Is(err, c.want) || errors.Is(err, c.not) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				var failure *AttemptError
				if !errors.As(err, &failure) {
					t.Fatalf("%T is no *AttemptError", err)
				}
				if failure.Op != "acquire" || failure.Key != "k" || failure.Attempts != 1 || len(failure.Votes) != 5 {
					t.Errorf("%+v", failure)
				}
			})
		})
	}
}

func steal(mem []*memNode) {
	for _, n := range mem {
		n.steal("k", time.Hour)
	}
}

func takeDown(mem []*memNode, err error) {
	for _, n := range mem {
		n.set(func(n *memNode) { n.refuse = err })
		n.restart(true)
	}
}

// Who failed, how, and no secrets.
//
// field-reports: 79
func TestErrorNamesEachNodeAndItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		takeDown(mem[4:], errors.New("connection refused"))
		if _, err := l.TryAcquire(t.Context(), "notice"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		mem[1].set(func(n *memNode) { n.fail = errors.New("NOAUTH Authentication required.") })
		mem[2].stop()
		mem[3].steal("k", time.Hour)
		_, err := l.TryAcquire(t.Context(), "k")
		for _, want := range []string{"n2 unknown: NOAUTH", "n3 unknown: no answer", "n4 denied: held by " + Token("somebody-else").Digest(), "n5 unsent: not connected: connection refused", "1 of 5 granted, 3 needed"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "somebody-else") {
			t.Errorf("a token in the error: %v", err)
		}
	})
}

// Whatever a failed attempt has set, or may have set, goes, and nobody else's key
// does.
//
// field-reports: 44, 99
func TestFailedAttemptLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: 30 * time.Second, NodeTimeout: 50 * time.Millisecond})
		synctest.Wait()
		mem[3].steal("k", time.Hour)
		mem[4].steal("k", time.Hour)
		for _, n := range mem[:3] {
			n.set(func(n *memNode) { n.mute = 1 })
		}
		if _, err := l.TryAcquire(t.Context(), "k"); err == nil {
			t.Fatal("acquired")
		}
		for _, n := range mem[:3] {
			if n.carried(OpAcquire) != 1 {
				t.Errorf("%s did not carry the acquire out: the test shows nothing", n)
			}
		}
		time.Sleep(300 * time.Millisecond)
		other := Token("somebody-else").Digest()
		if got := holders(mem, "k"); got != "- - - "+other+" "+other {
			t.Errorf("nodes hold %s", got)
		}
	})
}

func TestLateGrantOfAFailedAttemptIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 30 * time.Second})
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.late = 80 * time.Millisecond }) // later than NodeTimeout
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("got %v, want ErrNoQuorum", err)
		}
		time.Sleep(time.Second)
		if mem[0].carried(OpAcquire) != 1 {
			t.Fatal("the acquire was not carried out: the test shows nothing")
		}
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("nodes hold %s", got)
		}
	})
}

func TestEveryAttemptHasItsOwnToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		steal(mem)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, "k"); err == nil {
			t.Fatal("acquired")
		}
		seen := map[Token]bool{}
		for _, op := range mem[0].history() {
			if op.Kind == OpAcquire {
				if seen[op.Token] {
					t.Fatalf("token %s was used twice", op.Token)
				}
				if len(op.Token) != 36 {
					t.Fatalf("token of %d characters", len(op.Token))
				}
				seen[op.Token] = true
			}
		}
		if len(seen) < 5 {
			t.Errorf("%d attempts in 5 s", len(seen))
		}
	})
}

// The validity belongs to the attempt that won.
//
// field-reports: 114
func TestValidityCountsFromTheWinningAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		for _, n := range mem {
			n.steal("k", 1200*time.Millisecond)
		}
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Remaining(); got != 988*time.Millisecond {
			t.Errorf("remaining %v, want 988ms", got)
		}
		if err := lease.Extend(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
	})
}

// Whatever a minority of nodes does, rounds succeed, and whatever all of them do,
// calls end in time.
//
// field-reports: 50
func TestMinorityOfBadNodesIsNotNoticed(t *testing.T) {
	for name, spoil := range badNodes() {
		for _, bad := range [][]int{
			{0}, {1}, {2}, {3}, {4}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, nodes := memNodes(5)
					l := newLocker(t, nodes, Config{TTL: 10 * time.Second})
					synctest.Wait()
					for _, i := range bad {
						spoil(mem[i])
					}
					for range 100 {
						began := time.Now()
						lease, err := l.TryAcquire(t.Context(), "k")
						if err != nil {
							t.Fatal(err)
						}
						if err := lease.Release(t.Context()); err != nil {
							t.Fatal(err)
						}
						if took := time.Since(began); took > time.Millisecond {
							t.Fatalf("a cycle took %v: it waited for a bad node", took)
						}
						time.Sleep(3 * time.Millisecond)
					}
				})
			})
		}
	}
}

// badNodes are the ways a node may be of no use.
func badNodes() map[string]func(n *memNode) {
	return map[string]func(n *memNode){
		"hung":    func(n *memNode) { n.stop() },
		"refused": func(n *memNode) { takeDown([]*memNode{n}, errors.New("connection refused")) },
		"no such host": func(n *memNode) {
			takeDown([]*memNode{n}, &net.DNSError{Err: "no such host", Name: "nosuch.invalid", IsNotFound: true})
		},
		"silent": func(n *memNode) { n.set(func(n *memNode) { n.silent = true }); n.restart(true) },
		"errors": func(n *memNode) { n.set(func(n *memNode) { n.fail = errors.New("READONLY") }) },
		"slow":   func(n *memNode) { n.set(func(n *memNode) { n.lag = 300 * time.Millisecond }) },
	}
}

func TestCallsEndWithTheirContextWhateverNodesDo(t *testing.T) {
	const slack = 100 * time.Millisecond // NodeTimeout and 50 ms
	for name, spoil := range badNodes() {
		for bad := 0; bad <= 5; bad++ {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, nodes := memNodes(5)
					l := newLocker(t, nodes, Config{})
					synctest.Wait()
					lease, err := l.TryAcquire(t.Context(), "held")
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range mem[:bad] {
						spoil(n)
					}
					calls := map[string]func(ctx context.Context){
						"TryAcquire": func(ctx context.Context) { l.TryAcquire(ctx, "k") },
						"Acquire":    func(ctx context.Context) { l.Acquire(ctx, "held") },
						"Do": func(ctx context.Context) {
							l.Do(ctx, "held", func(context.Context, *Lease) error { return nil })
						},
						"Inspect": func(ctx context.Context) { l.Inspect(ctx, "k") },
						"Extend":  func(ctx context.Context) { lease.Extend(ctx, time.Second) },
						"Release": func(ctx context.Context) { lease.Release(ctx) },
						"Close":   func(ctx context.Context) { l.Close(ctx) },
					}
					for _, name := range []string{"TryAcquire", "Acquire", "Do", "Inspect", "Extend", "Release", "Close"} {
						for _, timeout := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond} {
							ctx, cancel := context.WithTimeout(t.Context(), timeout)
							began := time.Now()
							calls[name](ctx)
							if took := time.Since(began); took > timeout+slack {
								t.Errorf("%d bad nodes: %s with %v to go took %v", bad, name, timeout, took)
							}
							cancel()
						}
					}
				})
			})
		}
	}
}

// field-reports: 48
func TestCancelledAcquireReturnsItsCauseAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Backoff: func(int) time.Duration { return 5 * time.Second }})
		steal(mem)
		boom := errors.New("boom")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(boom) })
		began := time.Now()
		_, err := l.Acquire(ctx, "k")
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %v: the back-off was slept through", took)
		}
		if !errors.Is(err, boom) || !errors.Is(err, context.Canceled) || !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want boom, Canceled, and held as the reason of the wait", err)
		}
		for _, n := range mem {
			if n.holder("k") != "somebody-else" {
				t.Errorf("%s holds %v", n, n.holder("k"))
			}
		}
	})
}

func TestNothingIsSentForADoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, acquire := range []func(context.Context, string) (*Lease, error){l.TryAcquire, l.Acquire} {
			if _, err := acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		}
		if _, err := l.Inspect(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("inspect: got %v, want context.Canceled", err)
		}
		if mem[0].arrived() != 0 {
			t.Errorf("%d operations were sent", mem[0].arrived())
		}
	})
}

// The majority is of the configured nodes, not of those a client happens to reach.
//
// field-reports: 5
func TestMajorityIsOfAllNodesNotOfThoseConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		toNodes, all := ways(nodes)
		for _, w := range toNodes[2:] {
			w.set(0, true)
		}
		l, other := newLocker(t, all, Config{}), newLocker(t, nodes, Config{})
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("got %v, want ErrNoQuorum", err)
		}
		synctest.Wait()
		if got := holders(mem, "k"); got != "- - - - -" {
			t.Errorf("left behind: %s", got)
		}
		for range 50 { // however often the one tries who reaches two, the other has it
			lease := acquire(t, other, "k")
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) {
				t.Errorf("got %v, want ErrNoQuorum", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
	})
}

// A Locker that is made during an outage works after it.
//
// field-reports: 124
func TestLockerMadeDuringAnOutageWorksAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		takeDown(mem, errors.New("connection refused"))
		l := newLocker(t, nodes, Config{DurableNodes: true})
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("got %v, want ErrNoQuorum", err)
		}
		for _, n := range mem {
			n.set(func(n *memNode) { n.refuse = nil })
		}
		time.Sleep(time.Second)
		if _, err := l.TryAcquire(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	})
}

func TestFirstAttemptWaitsForTheFirstConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		var resume []func()
		for _, n := range mem {
			resume = append(resume, n.stop())
		}
		l := newLocker(t, nodes, Config{})
		time.AfterFunc(500*time.Millisecond, func() {
			for _, r := range resume {
				r()
			}
		})
		lease, err := l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Remaining(); got < 9800*time.Millisecond {
			t.Errorf("remaining %v: the wait for connections was counted", got)
		}
		synctest.Wait()
		if got := heldOn(mem, "k", lease.Token()); got != 5 {
			t.Errorf("%d of 5 nodes hold the key", got)
		}
	})
}

func TestInspectSaysWhoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{})
		seen, err := l.Inspect(t.Context(), "k")
		if err != nil || seen.Held || len(seen.Votes) != 5 {
			t.Fatalf("free: %+v, %v", seen, err)
		}
		lease, err := l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mem[4].steal("k", time.Hour)
		seen, err = l.Inspect(t.Context(), "k")
		if err != nil || !seen.Held || seen.Holder != lease.Token().Digest() || seen.Remaining != 9*time.Second {
			t.Errorf("held: %+v, %v", seen, err)
		}
		if v := seen.Votes[4]; v.Vote != quorum.Granted || v.Holder == seen.Holder {
			t.Errorf("the fifth node's vote is %+v", v)
		}
		takeDown(mem[:2], errors.New("connection refused"))
		time.Sleep(time.Second)
		if seen, err = l.Inspect(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) || seen.Held {
			t.Errorf("two on it, one not, two silent: %+v, %v", seen, err)
		}
	})
}
