package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// Whatever the handshake runs into, there is no connection then, and the reason
// is told: above all, no key is set in another database than the right one.
func TestFailedHandshakeIsNoConnection(t *testing.T) {
	own := errors.New("the user's own")
	for name, test := range map[string]struct {
		server respfake.Options
		client func(o *redis.Options)
		want   string
	}{
		"password":            {guarded, func(o *redis.Options) { o.Password = "wrong" }, "WRONGPASS"},
		"no password":         {guarded, func(o *redis.Options) {}, "NOAUTH"},
		"database":            {respfake.Options{}, func(o *redis.Options) { o.DB = 99 }, "DB index is out of range"},
		"database of cluster": {respfake.Options{Cluster: true}, func(o *redis.Options) { o.DB = 3 }, "SELECT is not allowed"},
		"name":                {respfake.Options{}, func(o *redis.Options) { o.ClientName = "a b" }, "Client names cannot contain spaces"},
		"OnConnect": {respfake.Options{}, func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { return own }
		}, own.Error()},
		"reply in OnConnect": {respfake.Options{}, func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return c.Incr(ctx, "list").Err() }
		}, "WRONGTYPE"},
		"nothing in OnConnect": {respfake.Options{}, func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return c.Get(ctx, "nothing").Err() }
		}, redis.Nil.Error()},
		"dialer": {respfake.Options{}, func(o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, own }
		}, own.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, test.server)
				s.Do(0, func(tx *respfake.Tx) { tx.Push("list", "item") })
				o := respOptions(s, 0)
				test.client(o)
				for range 3 {
					c, err := Redis(o).Connect(t.Context(), connLimit)
					if err == nil {
						c.Close()
					}
					if err == nil || !strings.Contains(err.Error(), test.want) {
						t.Errorf("got %v, want an error that says %q", err, test.want)
					}
				}
				synctest.Wait()
				if s.Conns() != 0 {
					t.Errorf("%d connections are left", s.Conns())
				}
			})
		})
	}
}

// OnConnect may set up what everything else on the connection rests on.
func TestUsersOnConnectRunsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		o := respOptions(s, 0)
		o.DB, o.ClientName = 3, "me"
		o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
			return c.SetNX(ctx, "mine", "x", time.Minute).Err()
		}
		c := dialConn(t, Redis(o), connLimit)
		mustSend(t, c, acquireOp("k", "t", time.Minute))
		var order []string
		for _, e := range s.Log() {
			order = append(order, e.Name)
		}
		want := []string{"hello", "select", "client|setname", "client|setinfo", "client|setinfo", "set", "client|id", "info", "set"}
		if !slices.Equal(order, want) {
			t.Errorf("sent %q, want %q", order, want)
		}
		s.Do(3, func(tx *respfake.Tx) {
			if got := tx.Keys(); !slices.Equal(got, []string{"k", "mine"}) {
				t.Errorf("the database holds %q", got)
			}
		})
	})
}

// Whom a connection has reached is told where it may be asked, and where it may
// not it works all the same.
func TestPeerIsWhoAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		deny      []string
		id, runID bool
	}{
		"all may be asked": {nil, true, true},
		"no INFO":          {[]string{"info"}, true, false},
		"no CLIENT ID":     {[]string{"client|id"}, false, true},
		"no CLIENT":        {[]string{"client"}, false, true},
		"nothing":          {[]string{"info", "client"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, respfake.Options{Users: map[string]respfake.User{"default": {Deny: test.deny}}})
				n := Redis(respOptions(s, 0))
				first, second := dialConn(t, n, connLimit), dialConn(t, n, connLimit)
				for i, c := range []Conn{first, second} {
					p := c.Peer()
					if (p.ID == int64(i+1)) != test.id || (p.ID == 0) == test.id || (p.RunID != "") != test.runID {
						t.Errorf("connection %d: %+v", i+1, p)
					}
					if got := answers(mustSend(t, c, acquireOp(fmt.Sprint(i), "t", time.Minute))); got != "granted" {
						t.Errorf("connection %d: %s", i+1, got)
					}
				}
				s.Restart(false)
				third := dialConn(t, n, connLimit)
				if p := third.Peer(); test.id && p.ID != 1 || test.runID && p.RunID == first.Peer().RunID {
					t.Errorf("after a restart: %+v, before: %+v", p, first.Peer())
				}
			})
		})
	}
}

// A node that is not there yet, or never answers, does not hold up Close.
func TestCloseDoesNotWaitForAHandshake(t *testing.T) {
	for name, fault := range map[string]func(s *respfake.Server){
		"blackhole": func(s *respfake.Server) { s.Blackhole(true) },
		"hung":      func(s *respfake.Server) { s.Hang() },
		"slow":      func(s *respfake.Server) { s.Lag(300 * time.Millisecond) },
		"muted":     func(s *respfake.Server) { s.Mute(1, "info") },
	} {
		for _, wait := range []time.Duration{0, 100 * time.Millisecond, 450 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servers, nodes := respNodes(t, 3, respfake.Options{})
					for _, s := range servers {
						fault(s)
					}
					l := newLocker(t, nodes, Config{})
					time.Sleep(wait)
					synctest.Wait()
					start := time.Now()
					if err := l.Close(t.Context()); err != nil {
						t.Error(err)
					}
					if took := time.Since(start); took > 0 {
						t.Errorf("Close took %v", took)
					}
					if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrClosed) {
						t.Errorf("got %v, want ErrClosed", err)
					}
				})
			})
		}
	}
}

// Connecting takes no longer than DialTimeout, a second if nothing else is said.
func TestConnectingEndsInTime(t *testing.T) {
	for name, fault := range map[string]func(s *respfake.Server){
		"blackhole":   func(s *respfake.Server) { s.Blackhole(true) },
		"hung":        func(s *respfake.Server) { s.Hang() },
		"each slow":   func(s *respfake.Server) { s.Lag(400 * time.Millisecond) },
		"no HELLO":    func(s *respfake.Server) { s.Mute(1, "hello") },
		"no identity": func(s *respfake.Server) { s.Mute(1, "info") },
	} {
		for timeout, want := range map[time.Duration]time.Duration{0: dialTimeout, 300 * time.Millisecond: 300 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newRespServer(t, respfake.Options{})
					fault(s)
					o := respOptions(s, 0)
					o.DialTimeout = timeout
					start := time.Now()
					_, err := Redis(o).Connect(t.Context(), connLimit)
					// The socket has the same deadline; either may be the first to say so.
					if took := time.Since(start); err == nil || took != want ||
						!strings.Contains(err.Error(), fmt.Sprint("within ", want)) && !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("after %v: %v", took, err)
					}
					if errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v passes for the end of the caller's context", err)
					}
					s.Continue()
					time.Sleep(2 * time.Second)
					if s.Conns() != 0 {
						t.Errorf("%d connections are left", s.Conns())
					}
				})
			})
		}
	}
}
