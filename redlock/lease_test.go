package redlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

func acquire(t testing.TB, l *Locker, key string) *Lease {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// A holder whose lease has run out leaves the next one alone.
//
// field-reports: 1
func TestReleaseLeavesAnothersKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		a := newLocker(t, nodes, Config{TTL: 300 * time.Millisecond})
		b := newLocker(t, nodes, Config{TTL: 5 * time.Second})
		old := acquire(t, a, "k")
		time.Sleep(500 * time.Millisecond)
		next := acquire(t, b, "k")
		time.Sleep(time.Second)
		if err := old.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		synctest.Wait()
		if got := heldOn(mem, "k", next.Token()); got != 5 {
			t.Errorf("the next holder's key is on %d of 5 nodes", got)
		}
		if seen, err := b.Inspect(t.Context(), "k"); err != nil || seen.Remaining != 4*time.Second {
			t.Errorf("it has %v left, %v, want 4s", seen.Remaining, err)
		}
		if _, err := a.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("a third got %v, want ErrHeld", err)
		}
	})
}

// Release says what became of the key, with each node's vote, after one question to
// each and NodeTimeout at most. That there is no key is an answer like any other.
//
// field-reports: 58, 60, 77
func TestReleaseSaysWhatBecameOfTheKey(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(t *testing.T, mem []*memNode)
		want  error
	}{
		{"held", func(*testing.T, []*memNode) {}, nil},
		{"gone from a minority", func(_ *testing.T, m []*memNode) { m[0].restart(false); m[1].restart(false) }, nil},
		{"gone from a majority", func(_ *testing.T, m []*memNode) { vanish(m[:3]) }, ErrLost},
		{"another's on a majority", func(_ *testing.T, m []*memNode) { steal(m[:3]) }, ErrLost},
		{"minority hangs", func(_ *testing.T, m []*memNode) { m[0].stop(); m[1].stop() }, nil},
		{"run out", func(*testing.T, []*memNode) { time.Sleep(11 * time.Second) }, ErrLost},
		{"majority hangs", func(_ *testing.T, m []*memNode) { m[0].stop(); m[1].stop(); m[2].stop() }, ErrNoQuorum},
		{"majority down", func(_ *testing.T, m []*memNode) { takeDown(m[:3], errors.New("refused")) }, ErrNoQuorum},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{})
				lease := acquire(t, l, "k")
				synctest.Wait()
				c.after(t, mem)
				before, began := mem[4].carried(OpRelease), time.Now()
				err := lease.Release(t.Context())
				if took := time.Since(began); took > l.nodeTimeout {
					t.Errorf("took %v", took)
				}
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				var failure *AttemptError
				if err != nil && (!errors.As(err, &failure) || len(failure.Votes) != 5 || failure.Op != "release") {
					t.Errorf("%#v", err)
				}
				var deleted, missing, silent int // some may not have answered yet
				for _, v := range votesOf(err) {
					switch v.Vote {
					case quorum.Granted:
						deleted++
					case quorum.Denied:
						missing++
					default:
						silent++
					}
				}
				if c.name == "gone from a majority" && (missing != 3 || deleted > 2) ||
					c.name == "run out" && (deleted > 0 || missing == 0) ||
					c.name == "majority down" && (missing > 0 || silent < 3) {
					t.Errorf("%d deleted, %d missing, %d silent: %v", deleted, missing, silent, err)
				}
				synctest.Wait()
				sent := mem[4].carried(OpRelease)
				if sent > before+1 {
					t.Errorf("%d releases were sent to one node", sent)
				}
				if err := lease.Release(t.Context()); !errors.Is(err, ErrReleased) {
					t.Errorf("the second time: got %v, want ErrReleased", err)
				}
				synctest.Wait()
				if got := mem[4].carried(OpRelease); got != sent {
					t.Error("the second release was sent")
				}
			})
		})
	}
}

// votesOf are the votes in the error of an operation.
func votesOf(err error) []Vote {
	var failure *AttemptError
	if errors.As(err, &failure) {
		return failure.Votes
	}
	return nil
}

func vanish(mem []*memNode) {
	for _, n := range mem {
		n.set(func(n *memNode) { n.keys = map[string]memKey{} })
	}
}

// A cancelled caller still gives the lock back, as quickly as any, and whatever a
// minority of nodes does.
//
// field-reports: 46
func TestReleaseIsSentAlthoughTheContextIsDone(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, context := range map[string]func(t *testing.T) context.Context{
		"live":      func(t *testing.T) context.Context { return t.Context() },
		"cancelled": func(*testing.T) context.Context { return cancelled },
		"too late": func(t *testing.T) context.Context {
			ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
			t.Cleanup(cancel)
			return ctx
		},
	} {
		for _, hung := range []int{0, 2} {
			t.Run(fmt.Sprint(name, ", hung ", hung), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, nodes := memNodes(5)
					l := newLocker(t, nodes, Config{TTL: time.Minute, MaxTTL: time.Minute})
					for _, n := range mem[5-hung:] {
						n.stop()
					}
					lease := acquire(t, l, "k")
					began := time.Now()
					if err := lease.Release(context(t)); err != nil {
						t.Error(err)
					}
					if took := time.Since(began); took > l.nodeTimeout {
						t.Errorf("took %v", took)
					}
					synctest.Wait()
					if got := heldOn(mem[:5-hung], "k", lease.Token()); got != 0 {
						t.Errorf("%d nodes hold the key", got)
					}
				})
			})
		}
	}
}

// What a failed acquire returns, or a variable that was never set, is a lease that
// is not held: whoever has not looked at the error may call everything.
//
// field-reports: 112
func TestLeaseOfNobodyIsNotHeld(t *testing.T) {
	for name, l := range map[string]*Lease{"nil": nil, "zero": new(Lease)} {
		t.Run(name, func(t *testing.T) {
			if l.Key() != "" || l.Token() != "" || l.Fence() != 0 || l.Remaining() != 0 || !l.Until().IsZero() {
				t.Error("it has something")
			}
			l.KeepAlive()
			for _, err := range []error{l.Release(t.Context()), l.Extend(t.Context(), time.Second), context.Cause(l.Context())} {
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("got %v, want ErrInvalid", err)
				}
			}
			if l.Context().Err() == nil {
				t.Error("its context lives")
			}
			if text := fmt.Sprintf("%v %#v %v", l, l, l.LogValue()); !strings.Contains(text, "lease") {
				t.Error(text)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		steal(mem)
		lease, err := l.TryAcquire(t.Context(), "k")
		if lease != nil || !errors.Is(err, ErrHeld) {
			t.Errorf("%v, %v", lease, err)
		}
	})
}

func TestExtendLengthensAndNeverShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(5)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		lease := acquire(t, l, "k")
		time.Sleep(500 * time.Millisecond)
		if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if got, want := lease.Remaining(), 9898*time.Millisecond; got != want {
			t.Errorf("remaining %v, want %v", got, want)
		}
		if err := lease.Extend(t.Context(), 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if got, want := lease.Remaining(), 9898*time.Millisecond; got != want {
			t.Errorf("after a shorter extension: remaining %v, want %v", got, want)
		}
		synctest.Wait()
		seen, err := l.Inspect(t.Context(), "k")
		if err != nil || seen.Remaining != 10*time.Second {
			t.Errorf("nodes keep it for %v, %v", seen.Remaining, err)
		}
		_ = mem
	})
}

// An extension that cannot be, or comes too late, changes nothing, and its error says
// which of the two it is.
//
// field-reports: 9, 19
func TestExtendNeedsAMajorityThatStillHolds(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(l *Locker, mem []*memNode)
		ttl    time.Duration
		want   error
		held   bool
	}{
		{"gone from a majority", func(_ *Locker, m []*memNode) { vanish(m[:3]) }, time.Second, ErrLost, false},
		{"another's on a majority", func(_ *Locker, m []*memNode) { steal(m[:3]) }, time.Second, ErrLost, false},
		{"gone from a minority", func(_ *Locker, m []*memNode) { vanish(m[:2]) }, time.Second, nil, true},
		{"majority hangs", func(_ *Locker, m []*memNode) { m[0].stop(); m[1].stop(); m[2].stop() }, time.Second, ErrNoQuorum, true},
		{"two gone, one hangs", func(_ *Locker, m []*memNode) { vanish(m[:2]); m[2].stop() }, time.Second, ErrNoQuorum, true},
		{"run out", func(*Locker, []*memNode) { time.Sleep(11 * time.Second) }, time.Second, ErrLost, false},
		{"zero", func(*Locker, []*memNode) {}, 0, ErrInvalid, true},
		{"negative", func(*Locker, []*memNode) {}, -time.Second, ErrInvalid, true},
		{"less than a millisecond", func(*Locker, []*memNode) {}, 300 * time.Microsecond, ErrInvalid, true},
		{"more than MaxTTL", func(*Locker, []*memNode) {}, 31 * time.Second, ErrInvalid, true},
		{"the largest duration", func(*Locker, []*memNode) {}, 1<<63 - 1, ErrInvalid, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				l := newLocker(t, nodes, Config{})
				lease := acquire(t, l, "k")
				synctest.Wait()
				c.before(l, mem)
				size := mem[0].size()
				asked := mem[0].arrived()
				err := lease.Extend(t.Context(), c.ttl)
				if !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if held := lease.Remaining() > 0; held != c.held {
					t.Errorf("held: %v, want %v", held, c.held)
				}
				if ctxErr := lease.Context().Err(); (ctxErr == nil) != c.held {
					t.Errorf("context: %v", ctxErr)
				}
				synctest.Wait()
				if got := mem[0].size(); got > size && c.want != nil {
					t.Error("extending created a key")
				}
				if c.want == ErrInvalid && mem[0].arrived() != asked {
					t.Error("an invalid extension was sent")
				}
				if seen, err := l.Inspect(t.Context(), "k"); c.want == ErrInvalid && (err != nil || seen.Remaining != 10*time.Second || heldOn(mem, "k", lease.Token()) != 5) {
					t.Errorf("after it the nodes have %+v, %v", seen, err)
				}
			})
		})
	}
}

// Once the holder has been told that the lease is lost, nothing revives it: an
// extension that was under way comes too late.
//
// field-reports: 15
func TestLostLeaseIsNotRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: 300 * time.Millisecond, NodeTimeout: 75 * time.Millisecond})
		lease := acquire(t, l, "k")
		synctest.Wait()
		for _, n := range mem {
			n.set(func(n *memNode) { n.lag = 60 * time.Millisecond })
		}
		time.Sleep(260 * time.Millisecond) // validity ends at 295 ms
		if err := lease.Extend(t.Context(), 5*time.Second); !errors.Is(err, ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		time.Sleep(time.Second)
		if lease.Remaining() != 0 || lease.Context().Err() == nil {
			t.Error("the lease is back")
		}
	})
}

// field-reports: 15
func TestContextEndsBeforeTheValidityDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		var lost []LostEvent
		l := newLocker(t, nodes, Config{TTL: time.Second, Trace: &Trace{Lost: func(e LostEvent) { lost = append(lost, e) }}})
		lease := acquire(t, l, "k")
		began := time.Now()
		ctx := lease.Context()
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		if took := time.Since(began); took > 988*time.Millisecond || took < 950*time.Millisecond {
			t.Errorf("the context ended after %v, the validity after 988ms", took)
		}
		if err := context.Cause(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("cause %v, want ErrLost", err)
		}
		if lease.Remaining() != 0 {
			t.Errorf("remaining %v after the context ended", lease.Remaining())
		}
		synctest.Wait()
		if len(lost) != 1 || lost[0].Key != "k" || !errors.Is(lost[0].Err, ErrLost) {
			t.Errorf("traced %v", lost)
		}
	})
}

// What the wall clock, a suspend and a step do to a lease.
//
// field-reports: 23
func TestLeaseAndTheClock(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(c *clock.Skewed)
		held bool
	}{
		{"suspend beyond the validity", func(c *clock.Skewed) { c.Suspend(time.Hour) }, false},
		{"short suspend", func(c *clock.Skewed) { c.Suspend(time.Second) }, true},
		{"wall clock an hour forward", func(c *clock.Skewed) { c.Step(time.Hour) }, false},
		{"wall clock an hour back", func(c *clock.Skewed) { c.Step(-time.Hour) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				skewed := clock.NewSkewed(1)
				l := newLocker(t, nodes, Config{Clock: skewed})
				lease := acquire(t, l, "k")
				ctx := lease.Context()
				before := lease.Remaining()
				c.do(skewed)
				if held := ctx.Err() == nil; held != c.held {
					t.Errorf("at once, by Err: held is %v", held)
				}
				if held := lease.Remaining() > 0; held != c.held {
					t.Errorf("at once, by Remaining: held is %v", held)
				}
				if c.name == "short suspend" && before-lease.Remaining() != time.Second {
					t.Errorf("a suspend of 1s took %v", before-lease.Remaining())
				}
				if c.name == "wall clock an hour back" && lease.Remaining() != before {
					t.Errorf("a step back changed %v to %v", before, lease.Remaining())
				}
				err := lease.Release(t.Context()) // is sent in any case
				if (err == nil) != c.held {
					t.Errorf("release: %v", err)
				}
				synctest.Wait()
				if got := heldOn(mem, "k", lease.Token()); got != 0 {
					t.Errorf("%d nodes hold the key after release", got)
				}
			})
		})
	}
}

// Nobody reads the clock for Done: the watcher must notice a suspend by itself.
func TestWatcherNoticesASuspendWithinATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		skewed := clock.NewSkewed(1)
		l := newLocker(t, nodes, Config{Clock: skewed})
		done := acquire(t, l, "k").Context().Done()
		time.Sleep(time.Second)
		skewed.Suspend(time.Hour)
		began := time.Now()
		<-done
		if took := time.Since(began); took > maxTick {
			t.Errorf("noticed after %v", took)
		}
	})
}

func TestLeaseContextCarriesValuesAndNotTheEndOfItsAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		lease, err := l.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if lease.Context().Value(key{}) != "v" || lease.Context().Err() != nil {
			t.Error("values are lost, or the acquire's end ended the lease")
		}
		lease.Release(t.Context())
		if err := context.Cause(lease.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("cause %v, want ErrReleased", err)
		}
	})
}

func TestTokensDoNotLeak(t *testing.T) {
	token, err := newToken()
	if err != nil {
		t.Fatal(err)
	}
	raw := string(token)
	inJSON, _ := json.Marshal(map[string]any{"token": token})
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "token", token)
	for _, s := range []string{fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %q", token, token, token, token, token), string(inJSON), logged.String()} {
		if strings.Contains(s, raw) {
			t.Errorf("the token shows in %q", s)
		}
		if !strings.Contains(s, token.Digest()) {
			t.Errorf("no digest in %q", s)
		}
	}
	if Token("").Digest() != "" {
		t.Error("no token has a digest")
	}
}
