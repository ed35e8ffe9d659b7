package respfake

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestHungServerRunsWhatClosedConnectionsSent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		old := connect(t, s)
		s.Hang()
		old.send(t, "SET phantom x")
		old.Close()
		young := connect(t, s)
		young.send(t, "DEL phantom", "PING")
		time.Sleep(time.Minute)
		if n := len(s.Log()); n != 0 || s.Conns() != 2 {
			t.Fatalf("while hung: %d requests ran, %d connections", n, s.Conns())
		}
		s.Continue()
		if !slices.Equal(names(s.Log()), []string{"set", "del", "ping"}) {
			t.Errorf("ran %v", s.Log())
		}
		if got := young.receive(t); got != ":1" {
			t.Errorf("DEL: %s", got)
		}
		if s.Conns() != 1 {
			t.Errorf("%d connections", s.Conns())
		}
	})
}

// The late SET in its plain form, and what keeps it from running.
func TestKillDiscardsWhatIsUnderWay(t *testing.T) {
	for _, kill := range []bool{false, true} {
		bubble(t, Options{}, func(t *testing.T, s *Server) {
			old := connect(t, s)
			id := old.ask(t, "CLIENT ID")[1:]
			s.Late(10 * time.Second)
			old.send(t, "SET phantom x")
			old.Close()
			s.Late(0)
			young := connect(t, s)
			if kill {
				young.want(t, "CLIENT KILL ID "+id, ":1")
				young.want(t, "CLIENT KILL ID "+id, ":0")
			}
			young.want(t, "DEL phantom", ":0")
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if has(s, "phantom") == kill {
				t.Errorf("kill %v: phantom %v", kill, !kill)
			}
			if s.Conns() != 1 {
				t.Errorf("%d connections", s.Conns())
			}
		})
	}
}

func TestKillComesTooLateForWhatArrivedBefore(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		old, young := connect(t, s), connect(t, s)
		id := old.ask(t, "CLIENT ID")[1:]
		s.Hang()
		young.send(t, "CLIENT KILL ID "+id)
		old.send(t, "SET phantom x")
		s.Continue()
		// Both arrived at one instant: the older connection is served first.
		if got := young.receive(t); got != ":1" || !has(s, "phantom") {
			t.Errorf("kill %s, phantom %v", got, has(s, "phantom"))
		}
		if got := old.receive(t); got != "+OK" {
			t.Errorf("SET: %s", got)
		}
		if _, err := readReply(old.r); err != io.EOF {
			t.Errorf("the killed one reads %v", err)
		}
		young.want(t, "CLIENT KILL ID "+id, ":0")
	})
}

func TestKillBeforeItsTargetIsServedDiscardsItsRequests(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		old, young := connect(t, s), connect(t, s)
		id := old.ask(t, "CLIENT ID")[1:]
		s.Hang()
		young.send(t, "CLIENT KILL ID "+id)
		time.Sleep(time.Millisecond)
		old.send(t, "SET phantom x")
		s.Continue()
		if got := young.receive(t); got != ":1" || has(s, "phantom") {
			t.Errorf("kill %s, phantom %v", got, has(s, "phantom"))
		}
		if _, err := readReply(old.r); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the killed one reads %v", err)
		}
	})
}

func TestKillOfItself(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		id := w.ask(t, "CLIENT ID")[1:]
		w.want(t, "CLIENT KILL ID "+id, ":0")
		w.send(t, "CLIENT KILL ID "+id+" SKIPME no", "SET a 1")
		if got := w.receive(t); got != ":1" {
			t.Errorf("got %s", got)
		}
		if _, err := readReply(w.r); err != io.EOF || has(s, "a") {
			t.Errorf("then %v; what followed ran: %v", err, has(s, "a"))
		}
	})
}
