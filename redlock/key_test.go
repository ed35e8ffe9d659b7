package redlock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// unusualKeys mean something to somebody on the way to the node.
var unusualKeys = []string{
	" ", "two words", "tab\t", "ключ", "鍵", "\xff\xfe not UTF-8", "\x00", "a\x00b", "\r\n", "a\r\nSET x 1\r\n", "$-1\r\n",
	"{", "}", "{}", "{a}{b}", "*", "k*", "[a-z]", "?", "\\", "%d%s", `"quoted"`, "'", "0", "-1", "nil", "OK", "GET", "PX",
	strings.Repeat("k", maxKeyLen), strings.Repeat("\n", maxKeyLen),
}

func TestKeysAreNotInterpreted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		l, rival := newLocker(t, nodes, Config{TTL: 2 * time.Second}), newLocker(t, nodes, Config{})
		for _, key := range unusualKeys {
			lease := acquire(t, l, key)
			synctest.Wait()
			for i, s := range servers {
				if got := keysOn(s); !slices.Equal(got, []string{key}) || tokenOn(s, key) != lease.Token() {
					t.Errorf("%.40q: node %d holds %.40q", key, i+1, got)
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			wholeCycle(t, l, rival, key)
		}
		synctest.Wait()
		// All of them in one flight.
		c := dialConn(t, nodes[0], connLimit)
		for _, kind := range []OpKind{OpAcquire, OpExtend, OpRelease} {
			var ops []Op
			for _, key := range unusualKeys {
				ops = append(ops, Op{Kind: kind, Key: key, Token: "t", TTL: time.Hour})
			}
			for _, op := range mustSend(t, c, ops...) {
				if op.Reply.Vote != quorum.Granted {
					t.Errorf("%v of %.40q: %s", kind, op.Key, answers(flightOf(*op)))
				}
			}
		}
		synctest.Wait()
		if left := leftOn(servers); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}

// What a key holds is a token and nothing else, also where it looks like an
// answer that means something.
func TestWhatAKeyHoldsIsNotInterpreted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		for _, held := range []string{"1", "0", "OK", "nil", "-1", "", " t", "t ", "T", "t\x00", "\r\n+OK\r\n", "-ERR no\r\n", "{}", strings.Repeat("x", 1<<20)} {
			s.Do(0, func(tx *respfake.Tx) { tx.Set("k", held, respfake.SetOptions{}) })
			flight := mustSend(t, c,
				acquireOp("k", "t", time.Second), extendOp("k", "t", time.Second), inspectOp("k"), releaseOp("k", "t"))
			for _, op := range flight {
				want := Reply{Vote: quorum.Denied, Holder: Token(held)}
				if op.Kind == OpInspect {
					want.Vote = quorum.Granted
				}
				if op.Reply != want {
					t.Errorf("%v of a key that holds %.40q: %s", op.Kind, held, answers(flightOf(*op)))
				}
			}
			if tokenOn(s, "k") != Token(held) {
				t.Errorf("%.40q was overwritten", held)
			}
		}
	})
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// A key of ours that holds something else altogether is somebody's: it is never
// overwritten or deleted, and the other keys of the flight do not suffer.
func TestKeyOfAnotherTypeIsHeldByAnother(t *testing.T) {
	for version, acquired := range map[string]string{"7.0.15": "denied(" + wrongType + ")", "6.2.14": "denied"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, respfake.Options{Version: version})
				for _, s := range servers {
					s.Do(0, func(tx *respfake.Tx) { tx.Push("list", "item") })
				}
				l := newLocker(t, nodes, Config{})
				if _, err := l.TryAcquire(t.Context(), "list"); !errors.Is(err, ErrHeld) {
					t.Errorf("got %v, want ErrHeld", err)
				}
				cycle(t, l, "k")
				c := dialConn(t, nodes[0], connLimit)
				flight := mustSend(t, c,
					acquireOp("a", "t", time.Minute), acquireOp("list", "t", time.Minute), acquireOp("b", "t", time.Minute),
					extendOp("a", "t", time.Hour), extendOp("list", "t", time.Hour), extendOp("b", "t", time.Hour),
					inspectOp("list"))
				if got, want := answers(flight), "granted "+acquired+" granted granted denied granted denied("+wrongType+")"; got != want {
					t.Errorf("answers %s, want %s", got, want)
				}
				flight = mustSend(t, c, releaseOp("a", "t"), releaseOp("list", "t"), releaseOp("b", "t"))
				if got, want := answers(flight), "granted denied granted"; got != want {
					t.Errorf("answers %s, want %s", got, want)
				}
				synctest.Wait()
				for i, s := range servers {
					s.Do(0, func(tx *respfake.Tx) {
						if got := tx.Keys(); !slices.Equal(got, []string{"list"}) || tx.Type("list") != "list" || tx.PTTL("list") != -1 {
							t.Errorf("node %d holds %q", i+1, got)
						}
					})
				}
			})
		})
	}
}

// Who looks why nobody gets a lock is told that something else stands in its
// place.
func TestInspectNamesAKeyThatIsNoLock(t *testing.T) {
	t.Parallel()
	servers, nodes := startServers(t, 3)
	l := onServers(t, nodes, patient())
	for _, put := range [][]any{
		{"rpush", "k", "v"}, {"sadd", "k", "v"}, {"zadd", "k", 1, "v"}, {"hset", "k", "f", "v"}, {"xadd", "k", "*", "f", "v"},
	} {
		for _, s := range servers {
			s.do(t, put...)
		}
		seen, err := l.Inspect(t.Context(), "k")
		if err != nil || seen.Held || seen.Holder != "" {
			t.Errorf("after %s: %+v, %v", put[0], seen, err)
		}
		for _, v := range seen.Votes {
			if v.Vote != quorum.Denied || v.Err == nil || !strings.Contains(v.String(), wrongType) {
				t.Errorf("after %s: %v", put[0], v)
			}
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("after %s: got %v, want ErrHeld", put[0], err)
		}
		// On one node alone it does not hide who holds the others.
		for _, s := range servers[1:] {
			s.do(t, "set", "k", "t", "px", 1_000_000)
		}
		seen, err = l.Inspect(t.Context(), "k")
		if err != nil || !seen.Held || seen.Holder != Token("t").Digest() || seen.Votes[0].Err == nil || seen.Votes[1].Err != nil {
			t.Errorf("after %s on one node: %+v, %v", put[0], seen, err)
		}
		for _, s := range servers {
			s.do(t, "del", "k")
		}
	}
}

// Each key is a lock of its own: what is named more closely leaves others alone.
func TestKeysDoNotHinderEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l, rival := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{})
		acquire(t, l, "stock:42")
		began := time.Now()
		for _, other := range []string{"stock:43", "stock", "stock:", "stock:421", "STOCK:42", "stock:42 "} {
			acquire(t, rival, other)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("they waited for %v", took)
		}
		if _, err := rival.TryAcquire(t.Context(), "stock:42"); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
	})
}
