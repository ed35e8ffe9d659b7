package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// Both round trips have one NodeTimeout together.
func TestFenceIsAgreedOnWithinNodeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, l, base := fencedNodes(t, Config{NodeTimeout: 50 * time.Millisecond}, []int{1, 2, 3}, []int{30, 30, 30})
		began := time.Now()
		lease, err := l.TryAcquire(t.Context(), "k")
		if took := time.Since(began); !errors.Is(err, ErrNoQuorum) || took != 50*time.Millisecond {
			t.Errorf("%v after %v with fence %+d, want ErrNoQuorum after 50ms", err, took, lease.Fence()-base)
		}
		time.Sleep(time.Second)
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left: %s", got)
		}
	})
}

// Where two round trips take longer than that, attempts fail, and what they stamp
// lets nodes agree for the next one.
func TestSlowNodesComeToAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{NodeTimeout: 50 * time.Millisecond, Backoff: func(int) time.Duration { return 200 * time.Millisecond }}
		_, l, _ := fencedNodes(t, cfg, []int{1, 2, 3}, []int{30, 30, 30})
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if lease.attempts > 3 { // one more for a node that was above the first two
			t.Errorf("%d attempts", lease.attempts)
		}
	})
}

func TestValidityIsWhatIsLeftAfterTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, _ := fencedNodes(t, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond}, []int{1, 2, 3}, []int{100, 100, 100})
		lease := acquire(t, l, "k")
		if got, want := lease.Remaining(), 788*time.Millisecond; got != want {
			t.Errorf("%v left, want %v", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSkewed(1)
		mem, l, _ := fencedNodes(t, Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond, Clock: c}, []int{1, 2, 3}, []int{100, 100, 100})
		time.AfterFunc(150*time.Millisecond, func() { c.Suspend(time.Hour) })
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrTooSlow) {
			t.Errorf("suspended between the round trips: %v, want ErrTooSlow", err)
		}
		time.Sleep(time.Second)
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left: %s", got)
		}
	})
}

// An attempt that comes to no fence is one that failed: it leaves nothing, and
// Acquire goes on.
func TestAcquireTriesAgainAfterAnAttemptWithoutAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, l, base := fencedNodes(t, Config{Backoff: func(int) time.Duration { return time.Millisecond }}, []int{1, 2, 3}, []int{10, 10, 10})
		time.AfterFunc(5*time.Millisecond, func() {
			for _, n := range mem {
				n.vanish("k")
			}
		})
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if lease.attempts != 2 {
			t.Errorf("%d attempts, want 2", lease.attempts)
		}
		if got := lease.Fence() - base; got < 2*minute+2 {
			t.Errorf("fence %+d, want one above the first attempt's", got)
		}
		time.Sleep(time.Second)
		if n := heldOn(mem, "k", lease.Token()); n != 3 {
			t.Errorf("%d nodes hold it", n)
		}
	})
}

// Whoever stops waiting in the middle leaves nothing either.
func TestAttemptThatIsCutShortBetweenItsRoundTripsLeavesNothing(t *testing.T) {
	for name, want := range map[string]error{"cancelled": context.Canceled, "closed": ErrClosed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, _ := fencedNodes(t, Config{}, []int{1, 2, 3}, []int{10, 10, 10})
				ctx, cancel := context.WithCancel(t.Context())
				closed := make(chan error, 1)
				time.AfterFunc(15*time.Millisecond, func() {
					if want == ErrClosed {
						closed <- l.Close(context.WithoutCancel(ctx))
					} else {
						cancel()
						closed <- nil
					}
				})
				began := time.Now()
				lease, err := l.TryAcquire(ctx, "k")
				if took := time.Since(began); !errors.Is(err, want) || lease != nil || took != 15*time.Millisecond {
					t.Errorf("%v after %v, want %v after 15ms", err, took, want)
				}
				if stamps(mem) == 0 {
					t.Error("no node was stamped: the test shows nothing")
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if got := holders(mem, "k"); got != "- - -" {
					t.Errorf("left: %s", got)
				}
				cancel()
			})
		})
	}
}

// An attempt that was granted, and whose key a majority has lost before the fence
// was agreed on, is not said to be held by another unless it is.
func TestAnAttemptThatNodesHaveForgottenIsNotHeldByAnother(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(n *memNode)
		want error
		not  error
	}{
		"gone":      {func(n *memNode) { n.vanish("k") }, ErrNoQuorum, ErrHeld},
		"another's": {func(n *memNode) { n.steal("k", time.Minute) }, ErrHeld, ErrNoQuorum},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, l, _ := fencedNodes(t, Config{}, []int{1, 2, 3, 0, 0}, []int{10, 10, 10, 15, 15})
				time.AfterFunc(5*time.Millisecond, func() {
					for _, n := range mem {
						c.lose(n)
					}
				})
				_, err := l.TryAcquire(t.Context(), "k")
				if !errors.Is(err, c.want) || errors.Is(err, c.not) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if says := strings.Contains(err.Error(), errGone.Error()); says != (c.want == ErrNoQuorum) {
					t.Errorf("that it has gone is said: %v, in %v", says, err)
				}
			})
		})
	}
}

// bareNode is a node of somebody else's making, which knows nothing of fences.
type bareNode struct{ Node }

func (n bareNode) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := n.Node.Connect(ctx, limit)
	return bareConn{c}, err
}

type bareConn struct{ Conn }

func (c bareConn) Send(ctx context.Context, flight []*Op) error {
	err := c.Conn.Send(ctx, flight)
	for _, op := range flight {
		op.Reply.Fence = 0
	}
	return err
}

// A grant without a fence does not count where there are to be fences: no lease is
// without one. What it has set is released.
func TestAGrantWithoutAFenceDoesNotCount(t *testing.T) {
	for bare := range 4 {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			for i := range bare {
				nodes[i] = bareNode{nodes[i]}
			}
			l := newLocker(t, nodes, Config{Fenced: true})
			lease, err := l.TryAcquire(t.Context(), "k")
			switch {
			case bare < 2 && (err != nil || !lease.Fence().Valid()):
				t.Errorf("%d of three: %v, fence %d", bare, err, lease.Fence())
			case bare >= 2 && (!errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), errNoFence.Error())):
				t.Errorf("%d of three: %v, fence %d", bare, err, lease.Fence())
			}
			lease.Release(t.Context())
			synctest.Wait()
			if got := holders(mem, "k"); got != "- - -" {
				t.Errorf("%d of three: left: %s", bare, got)
			}
		})
	}
}
