package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// Once it has ended, a connection stays so, or its successor would not know
// whom to kill.
func TestConnNeverConnectsAnew(t *testing.T) {
	for name, end := range map[string]func(s *respfake.Server){
		"cut":      func(s *respfake.Server) { s.Cut() },
		"restart":  func(s *respfake.Server) { s.Restart(true) },
		"lost":     func(s *respfake.Server) { s.Lose(1) },
		"muted":    func(s *respfake.Server) { s.Mute(1) },
		"hung":     func(s *respfake.Server) { s.Hang() },
		"readonly": func(s *respfake.Server) { s.Reply("*", "READONLY You can't write against a read only replica.") },
		"moved":    func(s *respfake.Server) { s.Reply("*", "MOVED 1 127.0.0.1:7001") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, respfake.Options{})
				n := Redis(respOptions(s, 0))
				c := dialConn(t, n, connLimit)
				mustSend(t, c, acquireOp("before", "t", time.Hour))
				end(s)
				for i := range 3 {
					flight := flightOf(acquireOp("after", "t", time.Hour))
					if err := c.Send(t.Context(), flight); err == nil {
						t.Errorf("flight %d after the end went through", i)
					}
					if flight[0].Reply.Vote != quorum.Unknown {
						t.Errorf("flight %d after the end: %s", i, answers(flight))
					}
					// It ends with the first; nothing is the matter with the node any more.
					s.Continue()
					s.Reply("*", "")
				}
				if err := c.Kill(t.Context(), 77); err == nil {
					t.Error("it still kills")
				}
				if err := c.Send(t.Context(), nil); err == nil {
					t.Error("it still answers")
				}
				c.Close()
				c.Close()
				time.Sleep(10 * time.Second)
				if s.Accepted() != 1 || s.Conns() != 0 {
					t.Errorf("%d connections were made, %d are open", s.Accepted(), s.Conns())
				}
				mustSend(t, dialConn(t, n, connLimit), acquireOp("anew", "t", time.Hour))
			})
		})
	}
}

func TestKillEndsTheOtherConnectionAndWhatItHasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		n := Redis(respOptions(s, 0))
		old := dialConn(t, n, connLimit)
		s.Late(time.Minute)
		go old.Send(context.Background(), flightOf(acquireOp("late", "t", time.Hour)))
		synctest.Wait()
		s.Late(0)
		c := dialConn(t, n, connLimit)
		if c.Peer().RunID == "" || c.Peer().RunID != old.Peer().RunID || c.Peer().ID == old.Peer().ID {
			t.Errorf("peers %+v and %+v", old.Peer(), c.Peer())
		}
		for range 2 { // that it is already gone is no error
			if err := c.Kill(t.Context(), old.Peer().ID); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if left := keysOn(s); left != nil {
			t.Errorf("left: %q", left)
		}
		if s.Conns() != 1 {
			t.Errorf("%d connections", s.Conns())
		}
		s.Reply("client|kill", "NOPERM no")
		if err := c.Kill(t.Context(), 77); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("got %v", err)
		}
		s.Cut()
		if err := c.Kill(t.Context(), 77); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("got %v, want the end of the connection", err)
		}
	})
}

// What an application needs of its own client is not the lock's business.
func TestNodeTakesFromItsOptionsOnlyHowToConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		for i, s := range servers {
			o := respOptions(s, i)
			o.PoolSize, o.MinIdleConns, o.PipelinePoolSize = 100, 10, 10
			o.MaxRetries, o.DialerRetries = 10, 10
			o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Nanosecond, time.Nanosecond, time.Nanosecond
			o.ConnMaxLifetime, o.ConnMaxIdleTime = time.Second, time.Second
			o.Limiter = refuser{}
			nodes[i] = Redis(o)
			*o = redis.Options{} // it is the caller's again
		}
		l := newLocker(t, nodes, Config{})
		for i := range 20 {
			cycle(t, l, fmt.Sprint(i))
			time.Sleep(700 * time.Millisecond)
		}
		for i, s := range servers {
			if s.Accepted() != 1 || s.Conns() != 1 {
				t.Errorf("node %d: %d connections were made, %d are open", i+1, s.Accepted(), s.Conns())
			}
		}
	})
}

type refuser struct{}

func (refuser) Allow() error { return errors.New("refused by the application's limiter") }

func (refuser) ReportResult(error) {}

func TestOneConnectionPerNodeWhileOpenNoneAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 5, respfake.Options{})
		l := newLocker(t, nodes, Config{})
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := range 5 {
					cycle(t, l, fmt.Sprint(w, "/", i))
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Hour) // kept by PINGs
		for i, s := range servers {
			if s.Accepted() != 1 || s.Conns() != 1 {
				t.Errorf("node %d: %d connections were made, %d are open", i+1, s.Accepted(), s.Conns())
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for i, s := range servers {
			if s.Accepted() != 1 || s.Conns() != 0 {
				t.Errorf("after Close, node %d: %d connections were made, %d are open", i+1, s.Accepted(), s.Conns())
			}
		}
	})
}

func TestNodesNameIsItsAddress(t *testing.T) {
	for _, test := range []struct {
		options redis.Options
		want    string
	}{
		{redis.Options{}, "localhost:6379"},
		{redis.Options{Addr: "Redis-1.Example:6379", Username: "u", Password: secret}, "redis-1.example:6379"},
		{redis.Options{Addr: "[::1]:6379"}, "[::1]:6379"},
		{redis.Options{Addr: "/run/Redis.sock", Password: secret}, "/run/Redis.sock"},
		{redis.Options{Network: "unix", Addr: "@Abstract:1"}, "@Abstract:1"},
	} {
		if got := Redis(&test.options).String(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.options, got, test.want)
		}
	}
	if Redis(nil) != nil {
		t.Error("Redis(nil) is a node")
	}
}

// The limit is that of each flight, counted from when it was sent.
func TestLimitIsOfEachFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 300 * time.Millisecond
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), limit)
		for i := range 3 {
			time.Sleep(2 * limit)
			mustSend(t, c, acquireOp(fmt.Sprint(i), "t", time.Hour))
		}
		s.Hang()
		time.Sleep(2 * limit)
		began := time.Now()
		if err := c.Send(t.Context(), flightOf(acquireOp("k", "t", time.Hour))); err == nil || time.Since(began) != limit {
			t.Errorf("got %v after %v, want an error after %v", err, time.Since(began), limit)
		}
	})
}
