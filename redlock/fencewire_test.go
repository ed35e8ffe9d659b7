package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// respKinds are the servers whose forms differ.
var respKinds = map[string]struct {
	server respfake.Options
	proto  int
}{
	"Redis 7":             {},
	"Redis 7, RESP3":      {proto: 3},
	"Redis 6.2":           {server: respfake.Options{Version: "6.2.14"}},
	"cluster":             {server: respfake.Options{Cluster: true}},
	"cluster, not told":   {server: respfake.Options{Cluster: true, Users: map[string]respfake.User{"default": {Deny: []string{"info"}}}}},
	"Redis 6.2, not told": {server: respfake.Options{Version: "6.2.14", Users: map[string]respfake.User{"default": {Deny: []string{"info"}}}}},
}

// fencedOp is op with a counter, and f as its fence.
func fencedOp(op Op, f fence.Token) Op {
	op.Counter, op.CounterTTL, op.Fence = counterOf(op.Key), time.Hour, f
	return op
}

func stampOp(key string, token Token, f fence.Token) Op {
	return fencedOp(Op{Kind: OpStamp, Key: key, Token: token}, f)
}

func TestFencesWorkOnEveryKindOfNode(t *testing.T) {
	for name, kind := range respKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var servers []*respfake.Server
				var nodes []Node
				for i := range 3 {
					s := newRespServer(t, kind.server)
					o := respOptions(s, i)
					o.Protocol = kind.proto
					servers, nodes = append(servers, s), append(nodes, Redis(o))
				}
				cfg := Config{Fenced: true, AllowUnidentified: true, TTL: 2 * time.Second}
				l, rival := newLocker(t, nodes, cfg), newLocker(t, nodes, cfg)
				plain := newLocker(t, nodes, Config{AllowUnidentified: true})
				keys := append([]string{"k", "{a}b", "x{a}"}, slices.DeleteFunc(slices.Clone(unusualKeys), func(key string) bool {
					return checkFenced(key) != nil
				})...)
				for _, key := range keys {
					wholeCycle(t, l, rival, key)
					wholeCycle(t, plain, l, key) // those without fences are excluded like any other
				}
				var wg sync.WaitGroup
				for w := range 32 {
					wg.Go(func() { wholeCycle(t, l, rival, fmt.Sprint("k", w)) })
				}
				wg.Wait()
				synctest.Wait()
				for i, s := range servers {
					for _, key := range keysOn(s) {
						if !strings.Contains(key, fenceMark) {
							t.Errorf("left on node %d: %.40q", i+1, key)
						}
					}
					if n := len(keysOn(s)); n != len(keys)+32 {
						t.Errorf("node %d has %d counters", i+1, n)
					}
				}
			})
		})
	}
}

// A flight is one call for each script, however many locks it is about.
func TestFlightOfManyFences(t *testing.T) {
	for name, kind := range respKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, kind.server)
				o := respOptions(s, 0)
				o.Protocol = kind.proto
				manyFences(t, dialConn(t, Redis(o), connLimit), func(key string) string { return string(tokenOn(s, key)) })
				n := asked(s, "eval", "evalsha")
				switch {
				case !kind.server.Cluster && n != 2*4+3: // three scripts are not known at first
					t.Errorf("%d script calls", n)
				case kind.server.Cluster && n < 2*4*maxFlight:
					t.Errorf("%d script calls for keys of many slots", n)
				}
			})
		})
	}
}

// manyFences has c carry full flights of everything that has to do with fences.
func manyFences(t *testing.T, c Conn, held func(key string) string) {
	t.Helper()
	now := micros()
	for round := range 2 {
		var acquires, stamps, extends, releases []Op
		for i := range maxFlight {
			key := fmt.Sprint("many", i)
			f := now + fence.Token(i*10+round)
			acquires = append(acquires, fencedOp(acquireOp(key, "t", time.Minute), f))
			stamps = append(stamps, stampOp(key, "t", f+5))
			extends = append(extends, fencedOp(extendOp(key, "t", time.Hour), 0))
			releases = append(releases, releaseOp(key, "t"))
		}
		if round == 1 { // they have counted to more than is proposed
			for i := range acquires {
				stamps[i].Fence = now + fence.Token(i*10+6)
			}
		}
		for _, flight := range [][]Op{acquires, stamps, extends, releases} {
			for i, op := range mustSend(t, c, flight...) {
				want := Reply{Vote: quorum.Granted}
				if op.Kind == OpAcquire {
					want.Fence = now + fence.Token(i*10+6*round)
				}
				if op.Reply != want {
					t.Fatalf("round %d, %v of %q: %+v, want %+v", round, op.Kind, op.Key, op.Reply, want)
				}
				if op.Kind == OpStamp {
					if got := held(op.Counter); got != op.Fence.String() {
						t.Errorf("round %d: %q is %s, want %s", round, op.Counter, got, op.Fence)
					}
				}
			}
		}
	}
}

// What is wrong with one counter is the answer for its lock alone, and that lock is
// not taken.
func TestBrokenCounterDoesNotSpoilOthers(t *testing.T) {
	for name, kind := range respKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, kind.server)
				s.Do(0, func(tx *respfake.Tx) {
					tx.Push(counterOf("list"), "item")
					tx.Set(counterOf("text"), "five", respfake.SetOptions{})
					tx.Set(counterOf("large"), strconv.Itoa(1<<53-1), respfake.SetOptions{})
				})
				o := respOptions(s, 0)
				o.Protocol = kind.proto
				c := dialConn(t, Redis(o), connLimit)
				keys := []string{"list", "a", "text", "b", "large", "c"}
				var acquires, stamps []Op
				for _, key := range keys {
					acquires = append(acquires, fencedOp(acquireOp(key, "t", time.Minute), 41))
					stamps = append(stamps, stampOp(key, "t", 42))
				}
				for range 2 {
					for i, op := range mustSend(t, c, acquires...) {
						r := op.Reply
						if broken := i%2 == 0; !broken && r != (Reply{Vote: quorum.Granted, Fence: 41}) ||
							broken && (r.Vote != quorum.Unknown || !strings.Contains(fmt.Sprint(r.Err), op.Counter)) {
							t.Errorf("acquire of %q: %+v", op.Key, r)
						}
						if broken := i%2 == 0; broken && tokenOn(s, op.Key) != "" {
							t.Errorf("%q was taken", op.Key)
						}
					}
				}
				for i, op := range mustSend(t, c, stamps...) {
					if broken := i%2 == 0; broken == (op.Reply.Vote == quorum.Granted) {
						t.Errorf("stamp of %q: %+v", op.Key, op.Reply)
					}
				}
			})
		})
	}
	t.Run("on a majority", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			servers, nodes := respNodes(t, 3, respfake.Options{})
			l := newLocker(t, nodes, Config{Fenced: true})
			for i, s := range servers {
				s.Do(0, func(tx *respfake.Tx) { tx.Set(counterOf("k"), "five", respfake.SetOptions{}) })
				lease, err := l.TryAcquire(t.Context(), "k")
				switch {
				case i == 0 && err != nil:
					t.Errorf("on one of three: %v", err)
				case i > 0 && (!errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), `"k:fence:{k}" holds no number`)):
					t.Errorf("on %d of three: %v", i+1, err)
				}
				if err == nil {
					lease.Release(t.Context())
				}
				synctest.Wait()
			}
			for i, s := range servers {
				if tokenOn(s, "k") != "" || tokenOn(s, counterOf("k")) != "five" {
					t.Errorf("node %d: lock %q, counter %q", i+1, tokenOn(s, "k"), tokenOn(s, counterOf("k")))
				}
			}
		})
	})
}

// What goes to a node for a lock with fences.
//
// field-reports: 26, 64
func TestFencedCommandsAreAsDocumented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		var token, first string
		for range 2 {
			l := newLocker(t, nodes, Config{Fenced: true, TTL: 1500 * time.Millisecond, FenceTTL: 1000*time.Hour + 1, KeyPrefix: "lock:"})
			synctest.Wait() // connected to all
			lease := acquire(t, l, "k")
			synctest.Wait()
			if err := lease.Extend(t.Context(), 2*time.Second); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if token == "" {
				token, first = string(lease.Token()), lease.Fence().String()
			}
		}
		const lock, counter, outlives = "lock:k", "lock:k:fence:{lock:k}", "3600000001"
		want := [][]string{
			{"eval", acquireSource, "2", lock, counter, token, "1500", first, outlives},
			{"evalsha", scripts[OpExtend].sum, "2", lock, counter, token, "2000", outlives},
			{"evalsha", scripts[OpRelease].sum, "1", lock, token},
		}
		for i, s := range servers {
			var got [][]string
			for _, e := range s.Log("eval", "evalsha", "set") {
				if e.Err == "" && len(got) < len(want) {
					got = append(got, append([]string{e.Name}, e.Args...))
				}
			}
			for j := range got {
				if got[j][0] == "eval" && got[j][1] != acquireSource { // not known so far
					got[j][0], got[j][1] = "evalsha", newScript(got[j][1]).sum
				}
				if !slices.Equal(got[j], want[j]) {
					t.Errorf("node %d was sent %.80q, want %.80q", i+1, got[j], want[j])
				}
			}
			if n := asked(s, "set"); n != 0 {
				t.Errorf("node %d was sent %d SETs", i+1, n)
			}
			for _, e := range s.Log("evalsha") { // or it would be carried out behind what follows it
				if e.Args[0] == scripts[OpAcquire].sum && e.Err != "" {
					t.Errorf("the first acquire was sent to node %d without its script: %s", i+1, e.Err)
				}
			}
		}
	})
}

// Scripts that a node has lost under load cost nobody a lease, and no fence its
// place.
//
// field-reports: 60
func TestForgottenScriptsLeaveFencesInOrder(t *testing.T) {
	for name, o := range map[string]respfake.Options{"Redis 7": {}, "cluster": {Cluster: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, o)
				l := newLocker(t, nodes, Config{Fenced: true})
				for _, s := range servers {
					s.Lag(time.Millisecond)
				}
				var wg sync.WaitGroup
				for w := range 16 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
						defer cancel()
						var last fence.Token
						for range 50 {
							lease, err := l.Acquire(ctx, fmt.Sprint("k", w))
							if err != nil {
								t.Error(err)
								return
							}
							if lease.Fence() <= last {
								t.Errorf("fence %d after %d", lease.Fence(), last)
							}
							last = lease.Fence()
							if err := lease.Release(t.Context()); err != nil {
								t.Error(err)
							}
							if lease.attempts > 1 {
								t.Errorf("%d attempts", lease.attempts)
							}
						}
					})
				}
				for range 40 {
					time.Sleep(2 * time.Millisecond)
					forgetScripts(t, servers...)
				}
				wg.Wait()
				for i, s := range servers {
					if n := len(slices.DeleteFunc(s.Log("evalsha"), func(e respfake.Entry) bool { return !strings.HasPrefix(e.Err, "NOSCRIPT") })); n < 10 {
						t.Errorf("node %d said NOSCRIPT %d times: the test shows little", i+1, n)
					}
				}
			})
		})
	}
}
