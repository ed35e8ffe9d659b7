package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// Scripts are gone after a restart, a flush or a fail-over.
//
// field-reports: 60
func TestForgottenScriptsAreNoError(t *testing.T) {
	for name, o := range map[string]respfake.Options{"Redis 7": {}, "cluster": {Cluster: true}, "Redis 6.2": {Version: "6.2.14"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, o)
				var d diary
				l := newLocker(t, nodes, Config{TTL: 3 * time.Second, Trace: d.trace()})
				synctest.Wait()
				forget := func() { forgetScripts(t, servers...) }
				forget()
				lease := acquire(t, l, "k")
				forget()
				if err := lease.Extend(t.Context(), 4*time.Second); err != nil {
					t.Error(err)
				}
				lease.KeepAlive()
				for range 10 { // renewals
					forget()
					time.Sleep(time.Second + 10*time.Millisecond)
				}
				other := acquire(t, l, "other")
				forget()
				// Extends and releases in one flight.
				go other.Release(context.WithoutCancel(t.Context()))
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n, errs := d.read(); len(errs) > 0 || n < 14 {
					t.Errorf("after %d events: %v", n, errs)
				}
				if left := leftOn(servers); left != nil {
					t.Errorf("left: %v", left)
				}
				for i, s := range servers {
					if refused := slices.DeleteFunc(s.Log("evalsha"), func(e respfake.Entry) bool { return !strings.HasPrefix(e.Err, "NOSCRIPT") }); len(refused) < 5 {
						t.Errorf("node %d said NOSCRIPT %d times: the test shows nothing", i+1, len(refused))
					}
				}
			})
		})
	}
}

// Redis 6.2 refuses NX together with GET. Where INFO may not be asked only the
// refusal tells.
func TestRedis62Works(t *testing.T) {
	for name, user := range map[string]respfake.User{"told by INFO": {}, "told by its refusal": {Deny: []string{"info"}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, respfake.Options{Version: "6.2.14", Users: map[string]respfake.User{"default": user}})
				l, rival := newLocker(t, nodes, Config{AllowUnidentified: true, TTL: 2 * time.Second}), newLocker(t, nodes, Config{AllowUnidentified: true})
				for range 3 {
					wholeCycle(t, l, rival, "k")
				}
				synctest.Wait()
				if left := leftOn(servers); left != nil {
					t.Errorf("left: %v", left)
				}
				for i, s := range servers {
					refused := 0
					for _, e := range s.Log("set") {
						switch {
						case e.Err != "":
							refused++
						case slices.Contains(e.Args, "get"), !slices.Equal(e.Args[2:4], []string{"nx", "px"}):
							t.Errorf("SET %q", e.Args)
						}
					}
					if shy := user.Deny != nil; refused > 2 || refused > 0 != shy { // once per connection
						t.Errorf("node %d refused %d SETs", i+1, refused)
					}
				}
			})
		})
	}
}

// wholeCycle is everything a lease can do, with a rival meanwhile.
func wholeCycle(t testing.TB, l, rival *Locker, key string) {
	t.Helper()
	ctx := context.Background()
	lease, err := l.TryAcquire(ctx, key)
	if err != nil {
		t.Errorf("acquire: %v", err)
		return
	}
	if _, err := rival.TryAcquire(ctx, key); !errors.Is(err, ErrHeld) {
		t.Errorf("a rival's acquire: %v", err)
	}
	if seen, err := rival.Inspect(ctx, key); err != nil || !seen.Held || seen.Holder != lease.Token().Digest() ||
		seen.Remaining <= 0 || seen.Remaining > l.ttl {
		t.Errorf("inspect: %+v, %v", seen, err)
	}
	if err := lease.Extend(ctx, l.ttl*3/2); err != nil {
		t.Errorf("extend: %v", err)
	}
	if seen, err := rival.Inspect(ctx, key); err != nil || seen.Remaining <= l.ttl {
		t.Errorf("inspect after extend: %+v, %v", seen, err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	if seen, err := rival.Inspect(ctx, key); err != nil || seen.Held {
		t.Errorf("inspect after release: %+v, %v", seen, err)
	}
	next, err := rival.TryAcquire(ctx, key)
	if err != nil {
		t.Errorf("acquire after release: %v", err)
		return
	}
	if err := next.Release(ctx); err != nil {
		t.Errorf("the rival's release: %v", err)
	}
}

// Refused for its form, an acquire is sent again, behind the rest of its flight;
// behind its own release it would be there to stay.
func TestRefusedAcquireIsNotSentAgainBehindItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shy := map[string]respfake.User{"default": {Deny: []string{"info"}}}
		s := newRespServer(t, respfake.Options{Version: "6.2.14", Users: shy})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		flight := mustSend(t, c, acquireOp("gone", "t", time.Hour), acquireOp("stays", "t", time.Hour), releaseOp("gone", "t"))
		if flight[0].Reply.Vote != quorum.Unknown || flight[1].Reply.Vote != quorum.Granted {
			t.Errorf("answers %s", answers(flight))
		}
		if got := keysOn(s); !slices.Equal(got, []string{"stays"}) {
			t.Errorf("the node holds %q", got)
		}
	})
}

// A release whose script was not known is sent again, and comes after the next acquire
// of its key then. Nothing of either is left or taken by that.
func TestForgottenReleaseBeforeAnAcquire(t *testing.T) {
	plain := func(token Token) Op { return acquireOp("k", token, time.Hour) }
	counted := func(token Token) Op { return fencedOp(plain(token), 0) }
	for name, test := range map[string]struct {
		forget  bool
		acquire func(Token) Op
		want    string
		holder  Token
	}{
		"known":             {false, plain, "granted granted", "new"},
		"known, fenced":     {false, counted, "granted granted", "new"},
		"forgotten":         {true, plain, "granted denied(old)", ""},
		"forgotten, fenced": {true, counted, "granted granted", "new"}, // both are sent again
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, respfake.Options{})
				c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
				mustSend(t, c, test.acquire("older"))
				mustSend(t, c, releaseOp("k", "older"))
				mustSend(t, c, test.acquire("old"))
				if test.forget {
					forgetScripts(t, s)
				}
				if got := answers(mustSend(t, c, releaseOp("k", "old"), test.acquire("new"))); got != test.want {
					t.Errorf("answers %s, want %s", got, test.want)
				}
				if got := tokenOn(s, "k"); got != test.holder {
					t.Errorf("the node holds %q, want %q", got, test.holder)
				}
			})
		})
	}
}

// The scripts of a member of a cluster take one key each.
//
// field-reports: 118
func TestClusterMemberWorks(t *testing.T) {
	keys := []string{"k", "{a}b", "a}b{", "{}", "}{x", "{a}c", "x{a}", "{a}{b}"}
	for name, user := range map[string]respfake.User{"told by INFO": {}, "told by its refusal": {Deny: []string{"info"}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, respfake.Options{Cluster: true, Users: map[string]respfake.User{"default": user}})
				c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
				for range 3 {
					var acquires, extends, releases []Op
					for _, key := range keys {
						acquires = append(acquires, acquireOp(key, "t", time.Second))
						extends = append(extends, extendOp(key, "t", time.Minute))
						releases = append(releases, releaseOp(key, "t"))
					}
					all := mustSend(t, c, slices.Concat(acquires, extends)...)
					all = append(all, mustSend(t, c, releases...)...)
					for _, op := range all {
						if op.Reply.Vote != quorum.Granted {
							t.Errorf("%v of %q: %s", op.Kind, op.Key, answers(flightOf(*op)))
						}
					}
				}
				if left := keysOn(s); left != nil {
					t.Errorf("left: %q", left)
				}
				crossed := slices.DeleteFunc(s.Log(), func(e respfake.Entry) bool { return !strings.HasPrefix(e.Err, "CROSSSLOT") })
				// Extends: it learns. A refusal of their form is all that may go wrong.
				if want := min(1, len(user.Deny)); len(crossed) != want {
					t.Errorf("%d refusals, want %d: %v", len(crossed), want, crossed)
				}
			})
		})
	}
	t.Run("whole cycle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			servers, nodes := respNodes(t, 3, respfake.Options{Cluster: true})
			l, rival := newLocker(t, nodes, Config{TTL: 2 * time.Second}), newLocker(t, nodes, Config{})
			for _, key := range keys {
				wholeCycle(t, l, rival, key)
			}
			synctest.Wait()
			if left := leftOn(servers); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	})
}
