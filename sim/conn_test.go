package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// sends are the calls on the only connection of a world.
type sends struct {
	world *world
	conn  *conn
	ops   []*redlock.Op   // of each call; nil for an empty flight
	ended []int           // which have returned, in order
	errs  []error         // … and how
	at    []time.Duration // … and when
}

// connected has do play in the world of a script, which has one client and one node,
// 5 ms after it began, on a connection with a limit.
func connected(t *testing.T, script string, limit time.Duration, do func(s *sends)) {
	t.Helper()
	p, err := Parse("nodes 1\nclients 1\n" + script)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(p)
		s := &sends{world: w}
		w.call(func() {
			c, err := w.clients[0].links[0].Connect(context.Background(), limit)
			if err != nil {
				t.Error(err)
				return
			}
			s.conn = c.(*conn)
		})
		if s.conn == nil {
			return
		}
		w.pass(5*time.Millisecond - w.now)
		do(s)
		for _, v := range w.judge.violations {
			t.Error(v)
		}
	})
}

// send begins a call: an acquire of a key of its own, which raises the counter that
// all have in common, or with empty none.
func (s *sends) send(empty bool) {
	i := len(s.ops)
	var flight []*redlock.Op
	var op *redlock.Op
	if !empty {
		name := fmt.Sprint("k", i)
		op = &redlock.Op{Kind: redlock.OpAcquire, Key: name, Token: redlock.Token(name), TTL: time.Hour, Counter: "c", CounterTTL: time.Hour}
		flight = append(flight, op)
	}
	s.ops = append(s.ops, op)
	go func() {
		err := s.conn.Send(context.Background(), flight)
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.ended, s.errs, s.at = append(s.ended, i), append(s.errs, err), append(s.at, s.world.now)
	}()
	s.world.settle()
}

// wait has the world go on until all calls have returned. It calls look before each event.
func (s *sends) wait(look func()) {
	s.world.drive(func() bool {
		look()
		return len(s.ended) == len(s.ops)
	})
}

// overtaken reports whether one of these has come, and one before it has not.
func overtaken(all []*request, come func(r *request) bool) bool {
	i := slices.IndexFunc(all, func(r *request) bool { return !come(r) })
	return i >= 0 && slices.ContainsFunc(all[i:], come)
}

// Calls that are under way at once are carried out in the order of sending, each once,
// and return in that order, though what is on its way may be faster than what left
// before it.
func TestCallsUnderWayAtOnceKeepTheirOrder(t *testing.T) {
	const first = 5500 * time.Microsecond // some have arrived by then, and some are on their way
	for name, fault := range map[string]string{
		"all is well":             "",
		"the link is cut":         "cut c1 n1",
		"the node hears nothing":  "deafen c1 n1",
		"nothing comes back":      "mute c1 n1",
		"the node is stopped":     "stop n1",
		"the client is paused":    "pause c1",
		"the client is suspended": "suspend c1",
	} {
		t.Run(name, func(t *testing.T) {
			requests, answers := 0, 0
			for seed := range 100 {
				script := fmt.Sprintf("seed %d\n", seed)
				if fault != "" {
					script += fmt.Sprintf("at %v for 30ms %s\n", first, fault)
				}
				connected(t, script, time.Second, func(s *sends) {
					s.send(false)
					s.send(false)
					s.world.pass(300 * time.Microsecond)
					s.send(true)
					s.send(false)
					late, early := false, false
					s.wait(func() {
						late = late || overtaken(s.conn.transit, func(r *request) bool { return r.here })
						early = early || overtaken(s.conn.asking, func(r *request) bool { return r.answered })
					})
					if late {
						requests++
					}
					if early {
						answers++
					}
					if !slices.Equal(s.ended, []int{0, 1, 2, 3}) {
						t.Errorf("seed %d: they return in the order %v", seed, s.ended)
					}
					if err := errors.Join(s.errs...); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					var fences []string
					for _, op := range s.ops {
						if op != nil {
							fences = append(fences, fmt.Sprint(op.Reply.Vote, " ", op.Reply.Fence))
						}
					}
					if got := strings.Join(fences, ", "); got != "granted 1, granted 2, granted 3" {
						t.Errorf("seed %d: they are answered %s", seed, got)
					}
					if n := s.world.ops[redlock.OpAcquire]; n != 3 {
						t.Errorf("seed %d: %d are carried out", seed, n)
					}
				})
			}
			if requests == 0 || answers == 0 {
				t.Errorf("requests were held up in %d schedules, answers in %d: the test shows nothing", requests, answers)
			}
		})
	}
}

// The end of a connection is that of all calls that are under way, and of those that
// are made afterwards. What the node has of them it carries out, in the order of sending.
func TestAConnectionEndsAllItsCalls(t *testing.T) {
	none := func(*sends) {}
	for name, test := range map[string]struct {
		script  string
		do      func(s *sends)
		first   error
		at      time.Duration // when the first returns
		after   error         // of those after it
		votes   string
		carried int
	}{
		"no answer for the limit": {
			"at 4ms for 1s cut c1 n1", none,
			errTimeout, 105 * time.Millisecond, errTimeout, "[pending pending pending]", 3,
		},
		"nothing comes back": {
			"at 4ms for 1s mute c1 n1", none,
			errTimeout, 105 * time.Millisecond, errTimeout, "[pending pending pending]", 3,
		},
		"a reset": {
			"at 4ms for 1s stop n1\nat 40ms for 1ms restart n1", none,
			errReset, 0, errReset, "[pending pending pending]", 0,
		},
		"it is closed": {
			"at 4ms for 1s stop n1", func(s *sends) { s.conn.Close() },
			errHungUp, 14 * time.Millisecond, errHungUp, "[pending pending pending]", 3,
		},
		"the answer to the first": {
			"at 4ms for 1s readonly n1", none,
			errReset, 0, errReset, "[unknown pending pending]", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			connected(t, test.script, 100*time.Millisecond, func(s *sends) {
				w := s.world
				s.send(false)
				w.pass(time.Microsecond)
				s.send(false)
				s.send(false)
				w.pass(9*time.Millisecond - time.Microsecond)
				test.do(s)
				s.wait(func() {})
				s.send(true) // too late
				s.send(true)
				s.wait(func() {})
				if !slices.Equal(s.ended, []int{0, 1, 2, 3, 4}) {
					t.Errorf("they return in the order %v", s.ended)
				}
				for i, err := range s.errs {
					want := test.after
					if i == 0 {
						want = test.first
					}
					if err != want {
						t.Errorf("call %d returns %v, want %v", i, err, want)
					}
				}
				if test.at != 0 && s.at[0] != test.at {
					t.Errorf("the first returns after %v, want %v", s.at[0], test.at)
				}
				if d := s.at[2] - s.at[0]; d < 0 || d > time.Microsecond {
					t.Errorf("the third returns %v after the first", d)
				}
				var votes []quorum.Vote
				for _, op := range s.ops[:3] {
					votes = append(votes, op.Reply.Vote)
				}
				if got := fmt.Sprint(votes); got != test.votes {
					t.Errorf("the votes are %s, want %s", got, test.votes)
				}
				w.pass(2 * time.Second) // what was held up gets there
				if n := w.ops[redlock.OpAcquire]; n != test.carried {
					t.Errorf("%d are carried out, want %d", n, test.carried)
				}
			})
		})
	}
}
