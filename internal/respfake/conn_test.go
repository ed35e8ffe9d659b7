package respfake

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func bubble(t *testing.T, opt Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(opt)
		defer s.Close()
		f(t, s)
	})
}

func TestWriteSucceedsWhileNobodyReads(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		s.Hang()
		big := strings.Repeat("x", 1<<20)
		for range 8 {
			if _, err := w.Write(request("SET", "k", big)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := len(s.Log()); n != 0 {
			t.Fatalf("%d requests ran while the server hung", n)
		}
		s.Continue()
		if n := len(s.Log("set")); n != 8 {
			t.Fatalf("%d of 8 ran", n)
		}
	})
}

func TestReadEndsAtItsDeadline(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		start := time.Now()
		w.SetReadDeadline(start.Add(time.Second))
		_, err := w.Read(make([]byte, 1))
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("after %v", d)
		}
		if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a second read: %v", err)
		}
		w.SetDeadline(time.Time{})
		w.want(t, "PING", "+PONG")
		w.SetWriteDeadline(time.Now())
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
	})
}

func TestBlockedReadHeedsANewDeadline(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.SetReadDeadline(time.Now().Add(time.Hour))
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			w.Read(make([]byte, 1))
			done <- time.Since(start)
		}()
		synctest.Wait()
		w.SetReadDeadline(time.Now().Add(time.Minute))
		if d := <-done; d != time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

func TestCloseWakesAReader(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		failed := make(chan error)
		go func() {
			_, err := w.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		w.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := w.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("deadline: %v", err)
		}
		if err := w.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		synctest.Wait()
		if n := s.Conns(); n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}

func TestServersCloseWakesAReader(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		failed := make(chan error)
		go func() {
			_, err := w.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-failed; err != io.EOF {
			t.Errorf("read: %v", err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Errorf("the first write after the peer's close: %v", err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the second one: %v", err)
		}
		if _, err := s.Dialer()(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
	})
}

func TestCutResetsAConnectionWithUnreadRequests(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.send(t, "SET a 1")
		synctest.Wait()
		s.Hang()
		w.send(t, "SET b 1")
		s.Cut()
		if got := w.receive(t); got != "+OK" {
			t.Errorf("the reply sent before: %s", got)
		}
		if _, err := readReply(w.r); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write: %v", err)
		}
		s.Continue()
		if n := len(s.Log("set")); n != 1 {
			t.Errorf("%d requests ran, want only the first", n)
		}
	})
}

func TestAddresses(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		a, b := connect(t, s), connect(t, s)
		if got := a.RemoteAddr(); got.Network() != "tcp" || got.String() != "127.0.0.1:6379" {
			t.Errorf("remote %v", got)
		}
		if a.LocalAddr() == b.LocalAddr() {
			t.Errorf("both clients are at %v", a.LocalAddr())
		}
	})
}

func TestDialHeedsItsContext(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Dialer()(ended, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
			t.Errorf("ended context: %v", err)
		}
		if n := s.Accepted(); n != 0 {
			t.Errorf("%d accepted", n)
		}
	})
}
