package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
