package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hang is how long anything may take before a test gives it up for hung.
const hang = 30 * time.Second

func TestStartedServerAnswers(t *testing.T) {
	s := start(t, Options{})
	c := dial(t, "tcp", s.Addr())
	if got := c.ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	c.send("INFO", "server")
	if info := c.bulk(); !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.PID())) {
		t.Errorf("the process that answers is not %d:\n%s", s.PID(), info)
	}
}

func TestServerListensOnLoopbackOnly(t *testing.T) {
	s := start(t, Options{})
	c := dial(t, "tcp", s.Addr())
	c.send("CONFIG", "GET", "bind")
	if got := c.pair(); got != "127.0.0.1" {
		t.Errorf("bound to %q", got)
	}
	for name, want := range map[string]string{"save": "", "appendonly": "no", "protected-mode": "yes"} {
		c.send("CONFIG", "GET", name)
		if got := c.pair(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestServersLiveSideBySide(t *testing.T) {
	a, b := start(t, Options{}), start(t, Options{})
	if a.Addr() == b.Addr() || a.PID() == b.PID() {
		t.Fatalf("%s (%d) and %s (%d)", a.Addr(), a.PID(), b.Addr(), b.PID())
	}
	if got := dial(t, "tcp", a.Addr()).ask("SET", "k", "a"); got != "+OK" {
		t.Fatal(got)
	}
	if got := dial(t, "tcp", b.Addr()).ask("GET", "k"); got != "$-1" {
		t.Errorf("b knows what a was told: %q", got)
	}
}

func TestServerListensOnAUnixSocketToo(t *testing.T) {
	s := start(t, Options{UnixSocket: true})
	if got := dial(t, "unix", s.Socket()).ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
}

func TestExtraArgumentsWin(t *testing.T) {
	s := start(t, Options{Args: []string{"--appendonly", "yes", "--maxmemory", "7mb"}})
	c := dial(t, "tcp", s.Addr())
	c.send("CONFIG", "GET", "maxmemory")
	if got := c.pair(); got != strconv.Itoa(7<<20) {
		t.Errorf("maxmemory %q", got)
	}
	c.send("CONFIG", "GET", "appendonly")
	if got := c.pair(); got != "yes" {
		t.Errorf("appendonly %q", got)
	}
}

func TestServerWithAPasswordIsReady(t *testing.T) {
	s := start(t, Options{Args: []string{"--requirepass", "secret"}})
	c := dial(t, "tcp", s.Addr())
	if got := c.ask("PING"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("PING: %q", got)
	}
	if got := c.ask("AUTH", "secret"); got != "+OK" {
		t.Errorf("AUTH: %q", got)
	}
}

func TestTakenPortIsAnError(t *testing.T) {
	Require(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	s, err := Start(patience(t), Options{Port: l.Addr().(*net.TCPAddr).Port, Dir: dir})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, errPortTaken) {
		t.Errorf("error %v", err)
	}
	leftNothingIn(t, dir)
}

func TestKilledServerIsGone(t *testing.T) {
	s := start(t, Options{})
	c := dial(t, "tcp", s.Addr())
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err == nil {
		t.Errorf("its connection still says %q", line)
	}
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("it still accepts connections")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("killed again: %v", err)
	}
}

func TestRestart(t *testing.T) {
	durable := []string{"--appendonly", "yes", "--appendfsync", "always"}
	for _, test := range []struct {
		name      string
		args      []string
		killFirst bool
		data      Data
		survives  bool
	}{
		{"running, kept", nil, false, Keep, true},
		{"running, wiped", nil, false, Wipe, false},
		{"killed, kept", nil, true, Keep, false},
		{"killed, kept, durable", durable, true, Keep, true},
		{"killed, wiped, durable", durable, true, Wipe, false},
		{"running, wiped, durable", durable, false, Wipe, false},
		{"running, kept, durable", durable, false, Keep, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, Options{Args: test.args})
			addr, pid := s.Addr(), s.PID()
			if got := dial(t, "tcp", addr).ask("SET", "k", "v"); got != "+OK" {
				t.Fatalf("SET: %q", got)
			}
			if test.killFirst {
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Restart(patience(t), test.data); err != nil {
				t.Fatal(err)
			}
			if s.Addr() != addr || s.PID() == pid {
				t.Errorf("%s (%d) came back as %s (%d)", addr, pid, s.Addr(), s.PID())
			}
			want := "$-1"
			if test.survives {
				want = "$1"
			}
			if got := dial(t, "tcp", addr).ask("GET", "k"); got != want {
				t.Errorf("GET: %q, want %q", got, want)
			}
		})
	}
}

func TestRestartWaitsForItsPort(t *testing.T) {
	s := start(t, Options{})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Restart(ctx, Keep) }()
	// Readiness must never be mistaken: whoever has the port answers nothing.
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	case <-time.After(hang):
		t.Fatal("Restart hangs")
	}
	l.Close()
	if err := s.Restart(patience(t), Keep); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, "tcp", s.Addr()).ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{Dir: dir, Args: []string{"--appendonly", "yes"}})
	c := dial(t, "tcp", s.Addr())
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.in.ReadString('\n'); err == nil {
		t.Error("it still runs")
	}
	leftNothingIn(t, dir)
	if err := s.Restart(patience(t), Keep); !errors.Is(err, ErrClosed) {
		t.Errorf("Restart after Close: %v", err)
	}
}

func leftNothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in its directory: %v (%v)", entries, err)
	}
}

// patience is a context that ends when something hangs.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	Require(t)
	s, err := Start(patience(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// client speaks RESP as far as these tests need it.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, network, addr string) *client {
	t.Helper()
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(hang))
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(words ...string) {
	fmt.Fprintf(c.conn, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(c.conn, "$%d\r\n%s\r\n", len(w), w)
	}
}

// line is the first line of the next answer.
func (c *client) line() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (c *client) ask(words ...string) string {
	c.t.Helper()
	c.send(words...)
	return c.line()
}

func (c *client) bulk() string {
	c.t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(c.line(), "$"))
	if err != nil {
		c.t.Fatal(err)
	}
	if n < 0 {
		return "" // nil
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, b); err != nil {
		c.t.Fatal(err)
	}
	return string(b[:n])
}

// pair is the second of an answer of two, as CONFIG GET gives it.
func (c *client) pair() string {
	c.t.Helper()
	if got := c.line(); got != "*2" {
		c.t.Fatalf("answer %q", got)
	}
	c.bulk()
	return c.bulk()
}
