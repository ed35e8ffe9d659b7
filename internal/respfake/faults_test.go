package respfake

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func has(s *Server, key string) (found bool) {
	s.Do(0, func(tx *Tx) { found = tx.Type(key) != "none" })
	return found
}

func names(log []Entry) (out []string) {
	for _, e := range log {
		out = append(out, e.Name)
	}
	return out
}

func TestRefuseLeavesConnections(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Refuse(true)
		_, err := s.Dialer()(t.Context(), "tcp", "127.0.0.1:1")
		var op *net.OpError
		if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("got %v", err)
		}
		w.want(t, "PING", "+PONG")
		s.Refuse(false)
		connect(t, s).want(t, "PING", "+PONG")
		if s.Accepted() != 2 {
			t.Errorf("accepted %d", s.Accepted())
		}
	})
}

func TestBlackholeEndsWithTheContextOrTheServer(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		s.Blackhole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := s.Dialer()(ctx, "tcp", "127.0.0.1:1")
		var timeout net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("after %v", d)
		}
		failed := make(chan error)
		go func() {
			_, err := s.Dialer()(context.WithoutCancel(ctx), "tcp", "127.0.0.1:1")
			failed <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-failed; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestLagDelaysRepliesNotRequests(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Lag(time.Second)
		start := time.Now()
		w.send(t, "SET a 1")
		synctest.Wait()
		if at := s.Log("set")[0].At; !at.Equal(start) {
			t.Errorf("ran %v late", at.Sub(start))
		}
		s.Lag(0)
		w.send(t, "PING") // its reply must not overtake
		if got := w.receive(t); got != "+OK" || time.Since(start) != time.Second {
			t.Errorf("%s after %v", got, time.Since(start))
		}
		w.want(t, "PING", "+PONG")
		if time.Since(start) != time.Second {
			t.Errorf("the next one after %v", time.Since(start))
		}
	})
}

func TestLateDelaysRequestsOfThisConnectionOnly(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		a, b := connect(t, s), connect(t, s)
		start := time.Now()
		s.Late(time.Second)
		a.send(t, "SET k a NX")
		s.Late(0)
		b.want(t, "SET k b NX", "+OK")
		if got := a.receive(t); got != "$-1" || time.Since(start) != time.Second {
			t.Errorf("%s after %v", got, time.Since(start))
		}
		log := s.Log("set")
		if log[0].Args[1] != "b" || log[1].At.Sub(start) != time.Second {
			t.Errorf("log %v", log)
		}
	})
}

func TestLoseRunsAndCloses(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Lose(1)
		w.send(t, "SET a 1", "SET b 1")
		if reply, err := readReply(w.r); err == nil {
			t.Errorf("got a reply: %s", reply)
		}
		if !has(s, "a") || has(s, "b") {
			t.Errorf("a ran: %v, b ran: %v", has(s, "a"), has(s, "b"))
		}
		connect(t, s).want(t, "PING", "+PONG")
	})
}

func TestLoseTakesAWholePipeline(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Lose(2, "set")
		w.send(t, "PING", "SET a 1", "SET b 1")
		if got := w.receive(t); got != "+PONG" {
			t.Errorf("PING: %s", got)
		}
		if _, err := readReply(w.r); err != io.EOF {
			t.Errorf("then %v", err)
		}
		if !has(s, "a") || !has(s, "b") {
			t.Errorf("a ran: %v, b ran: %v", has(s, "a"), has(s, "b"))
		}
		connect(t, s).want(t, "SET c 1", "+OK")
	})
}

func TestMuteRunsAndStays(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Mute(1, "client")
		w.want(t, "PING", "+PONG")
		w.send(t, "CLIENT SETNAME me", "CLIENT GETNAME")
		if got := w.receive(t); got != `$"me"` {
			t.Errorf("got %s", got)
		}
	})
}

func TestReplyInsteadOfRunning(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Reply("*", "LOADING Redis is loading the dataset in memory")
		s.Reply("set", "OOM command not allowed when used memory > 'maxmemory'.")
		w.want(t, "SET a 1", "-OOM command not allowed when used memory > 'maxmemory'.")
		w.want(t, "GET a", "-LOADING Redis is loading the dataset in memory")
		s.Reply("*", "")
		w.want(t, "GET a", "$-1")
		s.Reply("set", "")
		w.want(t, "SET a 1", "+OK")
		var errs []string
		for _, e := range s.Log() {
			code, _, _ := strings.Cut(e.Err, " ")
			errs = append(errs, code)
		}
		if !slices.Equal(errs, []string{"OOM", "LOADING", "", ""}) {
			t.Errorf("log %v", s.Log())
		}
	})
}

func TestRestartIsANewProcess(t *testing.T) {
	for _, keep := range []bool{false, true} {
		bubble(t, Options{}, func(t *testing.T, s *Server) {
			s.Script("return 1", func(*Tx, []string, []string) any { return 1 })
			connect(t, s)
			w := connect(t, s)
			w.want(t, "CLIENT ID", ":2")
			w.want(t, "SET a 1", "+OK")
			sha := digest("return 1")
			w.askArgs(t, "SCRIPT", "LOAD", "return 1")
			time.Sleep(90 * time.Second)
			before := infoFields(t, w)
			s.Hang()
			w.send(t, "SET b 1")
			s.Restart(keep)
			if _, err := readReply(w.r); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the old connection reads %v", err)
			}
			w = connect(t, s)
			w.want(t, "CLIENT ID", ":1")
			after := infoFields(t, w)
			for _, field := range []string{"run_id", "process_id", "master_replid"} {
				if before[field] == after[field] {
					t.Errorf("%s is still %s", field, after[field])
				}
			}
			if before["uptime_in_seconds"] != "90" || after["uptime_in_seconds"] != "0" {
				t.Errorf("uptime %s, then %s", before["uptime_in_seconds"], after["uptime_in_seconds"])
			}
			if has(s, "a") != keep || has(s, "b") {
				t.Errorf("keep %v: a %v, b %v", keep, has(s, "a"), has(s, "b"))
			}
			w.want(t, "EVALSHA "+sha+" 0", "-NOSCRIPT No matching script. Please use EVAL.")
			if s.Conns() != 1 || s.Accepted() != 3 {
				t.Errorf("%d connections, %d accepted", s.Conns(), s.Accepted())
			}
		})
	}
}

func TestSetInfoOutlivesARestart(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		s.SetInfo("role", "slave")
		s.SetInfo("maxmemory_policy", "allkeys-lru")
		s.Restart(false)
		w := connect(t, s)
		if got := infoFields(t, w)["role"]; got != "slave" {
			t.Errorf("role %s", got)
		}
		if got := w.ask(t, "HELLO"); !strings.Contains(got, `"replica"`) {
			t.Errorf("HELLO %s", got)
		}
		w.want(t, "CONFIG GET *policy", `*[$"maxmemory-policy" $"allkeys-lru"]`)
		defer func() {
			if recover() == nil {
				t.Error("a field that does not exist was taken")
			}
		}()
		s.SetInfo("no_such_field", "x")
	})
}
