package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// outages are what may be wrong with a node, and how it ends.
var outages = map[string]struct{ begin, end func(s *respfake.Server) }{
	"hung": {
		func(s *respfake.Server) { s.Hang() },
		func(s *respfake.Server) { s.Continue() },
	},
	"refusing": {
		func(s *respfake.Server) { s.Refuse(true); s.Cut() },
		func(s *respfake.Server) { s.Refuse(false) },
	},
	"out of reach": {
		func(s *respfake.Server) { s.Blackhole(true); s.Cut() },
		func(s *respfake.Server) { s.Blackhole(false) },
	},
	"far away": {
		func(s *respfake.Server) { s.Lag(3 * time.Second) },
		func(s *respfake.Server) { s.Lag(0) },
	},
	"hard to reach": {
		func(s *respfake.Server) { s.Late(3 * time.Second) },
		func(s *respfake.Server) { s.Late(0) },
	},
	"losing answers": {
		func(s *respfake.Server) { s.Lose(1<<20, "set", "eval", "evalsha", "get") },
		func(s *respfake.Server) { s.Lose(0) },
	},
	"mute": {
		func(s *respfake.Server) { s.Mute(1 << 20) },
		func(s *respfake.Server) { s.Mute(0); s.Cut() }, // or the next answer is taken for a former one's
	},
	"restarting": {
		func(s *respfake.Server) { s.Refuse(true); s.Restart(false) },
		func(s *respfake.Server) { s.Refuse(false) },
	},
	"shutting the door": {
		func(s *respfake.Server) { s.Reply("*", "NOAUTH Authentication required.") },
		func(s *respfake.Server) { s.Reply("*", "") },
	},
}

// Two of five nodes may be in any trouble: everything succeeds, and nothing
// waits for them. When they are back nothing is left on them.
//
// field-reports: 50
func TestMinorityInTroubleCostsNothing(t *testing.T) {
	for name, outage := range outages {
		for _, known := range []bool{true, false} { // before it begins
			t.Run(fmt.Sprintf("%s, known %v", name, known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servers, nodes := respNodes(t, 5, respfake.Options{})
					for _, s := range servers {
						s.Lag(time.Millisecond)
					}
					begin := func() {
						for _, s := range servers[:2] {
							outage.begin(s)
						}
					}
					if !known {
						begin()
					}
					l := newLocker(t, nodes, Config{TTL: 30 * time.Second})
					time.Sleep(100 * time.Millisecond)
					if known {
						begin()
					}
					until := time.Now().Add(7 * time.Second)
					for i := 0; time.Now().Before(until); i++ {
						start := time.Now()
						cycle(t, l, fmt.Sprint("k", i%7))
						if took := time.Since(start); took > 10*time.Millisecond {
							t.Errorf("cycle %d took %v", i, took)
						}
						time.Sleep(time.Duration(i%13) * 17 * time.Millisecond)
					}
					for _, s := range servers[:2] {
						outage.end(s)
					}
					time.Sleep(20 * time.Second) // shorter than the keys would last
					if left := leftOn(servers); left != nil {
						t.Errorf("left: %v", left)
					}
					lease := acquire(t, l, "after")
					time.Sleep(100 * time.Millisecond)
					for i, s := range servers {
						if tokenOn(s, "after") != lease.Token() {
							t.Errorf("node %d does not take part again", i+1)
						}
					}
				})
			})
		}
	}
}

// With all nodes in trouble calls end in time, with an error that says so.
func TestEveryCallEndsInTime(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 5, respfake.Options{})
				cfg := Config{TTL: 20 * time.Second, NodeTimeout: 100 * time.Millisecond}
				l := newLocker(t, nodes, cfg)
				lease, kept := acquire(t, l, "lease"), acquire(t, l, "kept")
				synctest.Wait()
				for _, s := range servers {
					outage.begin(s)
				}
				inTime := func(what string, limit time.Duration, call func(ctx context.Context) error) {
					t.Helper()
					start := time.Now()
					err := call(t.Context())
					if took := time.Since(start); !errors.Is(err, ErrNoQuorum) || took > limit {
						t.Errorf("%s took %v: %v", what, took, err)
					}
					if errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: nobody's deadline has passed, but %v", what, err)
					}
				}
				for range 100 { // long enough for connections to end and be made anew
					inTime("acquire", cfg.NodeTimeout, func(ctx context.Context) error {
						_, err := l.TryAcquire(ctx, "k")
						return err
					})
					inTime("inspect", cfg.NodeTimeout, func(ctx context.Context) error {
						_, err := l.Inspect(ctx, "k")
						return err
					})
					inTime("extend", cfg.NodeTimeout, func(ctx context.Context) error { return kept.Extend(ctx, 20*time.Second) })
					time.Sleep(50 * time.Millisecond)
				}
				inTime("release", cfg.NodeTimeout, func(ctx context.Context) error { return lease.Release(ctx) })

				ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
				defer cancel()
				start := time.Now()
				if _, err := l.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 71*time.Millisecond {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				// A Locker that is made meanwhile waits for its first connections.
				young := newLocker(t, nodes, cfg)
				inTime("the first acquire", dialTimeout+cfg.NodeTimeout, func(ctx context.Context) error {
					_, err := young.TryAcquire(ctx, "k")
					return err
				})
				ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				start = time.Now()
				if err := l.Close(ctx); time.Since(start) > 401*time.Millisecond {
					t.Errorf("Close took %v: %v", time.Since(start), err)
				}
			})
		})
	}
}

// Of an acquire whose answer is lost nobody knows what has become. Its key is
// released as soon as the node can be spoken to again.
//
// field-reports: 17, 44
func TestAcquireWhoseAnswerIsLostIsReleased(t *testing.T) {
	for name, fault := range map[string]func(s *respfake.Server){
		"lost":  func(s *respfake.Server) { s.Lose(1, "set") },
		"muted": func(s *respfake.Server) { s.Mute(1, "set") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 5, respfake.Options{})
				l := newLocker(t, nodes, Config{TTL: 30 * time.Second})
				synctest.Wait()
				for _, s := range servers[:3] {
					fault(s)
				}
				for _, s := range servers[3:] {
					s.Do(0, func(tx *respfake.Tx) { tx.Set("k", "somebody-else", respfake.SetOptions{}) })
				}
				if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) {
					t.Errorf("got %v, want ErrNoQuorum", err)
				}
				for i, s := range servers[:3] {
					if tokenOn(s, "k") == "" {
						t.Errorf("node %d was not set: the test shows nothing", i+1)
					}
				}
				time.Sleep(6 * time.Second) // as long as a connection may take to be given up
				for i, s := range servers {
					want, sets := Token(""), asked(s, "set")
					if i >= 3 {
						want = "somebody-else"
					}
					if tokenOn(s, "k") != want || sets > 1 {
						t.Errorf("node %d holds %q after %d SETs", i+1, string(tokenOn(s, "k")), sets)
					}
				}
				for _, s := range servers[3:] {
					s.Do(0, func(tx *respfake.Tx) { tx.Del("k") })
				}
				cycle(t, l, "k")
			})
		})
	}
}

// Nodes that answer with an error are like nodes that do not answer: a minority
// is harmless, a majority is no quorum, in the nodes' own words.
//
// field-reports: 27, 50, 81
func TestErrorRepliesCountAsNoAnswer(t *testing.T) {
	for _, text := range errorReplies {
		word, _, _ := strings.Cut(text, " ")
		for _, command := range []string{"set", "evalsha", "*"} {
			t.Run(word+" to "+command, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servers, nodes := respNodes(t, 5, respfake.Options{})
					l := newLocker(t, nodes, Config{TTL: 20 * time.Second})
					cycle(t, l, "scripts")
					synctest.Wait()
					for _, s := range servers[:2] {
						s.Reply(command, text)
					}
					for i := range 8 {
						start := time.Now()
						lease := acquire(t, l, fmt.Sprint("minority", i))
						if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
							t.Error(err)
						}
						if err := lease.Release(t.Context()); err != nil {
							t.Error(err)
						}
						if took := time.Since(start); took > 0 {
							t.Errorf("a cycle took %v", took)
						}
						time.Sleep(30 * time.Millisecond)
					}
					lease := acquire(t, l, "majority")
					synctest.Wait()
					servers[2].Reply(command, text)
					failing := func(what string, err error) {
						t.Helper()
						if !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), text) {
							t.Errorf("%s: got %v, want ErrNoQuorum that says %s", what, err, word)
						}
					}
					if command != "evalsha" {
						_, err := l.TryAcquire(t.Context(), "another")
						failing("acquire", err)
					}
					if command != "set" {
						failing("extend", lease.Extend(t.Context(), 20*time.Second))
						failing("release", lease.Release(t.Context()))
					} else if err := lease.Release(t.Context()); err != nil && word != "READONLY" && word != "MOVED" { // they end the connection
						t.Error(err)
					}
					time.Sleep(time.Second)
					for _, s := range servers {
						s.Reply(command, "")
					}
					time.Sleep(3 * time.Second)
					if left := leftOn(servers); left != nil {
						t.Errorf("left: %v", left)
					}
					cycle(t, l, "after")
				})
			})
		}
	}
}
