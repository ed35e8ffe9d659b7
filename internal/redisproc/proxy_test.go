package redisproc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// behindProxy is a server, a proxy to it, and a client of each: one that the
// faults reach and one that sees what really is.
func behindProxy(t *testing.T) (p *Proxy, far, near *client) {
	t.Helper()
	s := start(t, Options{})
	p, err := NewProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	far, near = dial(t, "tcp", p.Addr()), dial(t, "tcp", s.Addr())
	if got := far.ask("PING"); got != "+PONG" {
		t.Fatalf("PING: %q", got)
	}
	if tally := p.Tally(); tally != (Tally{}) {
		t.Fatalf("no fault yet: %+v", tally)
	}
	return p, far, near
}

// settles waits until the proxy has done what is wanted.
func settles(t *testing.T, p *Proxy, want Tally) {
	t.Helper()
	for deadline := time.Now().Add(hang); p.Tally() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got  %+v\nwant %+v", p.Tally(), want)
		}
	}
}

// becomes waits until a key has a value.
func becomes(t *testing.T, c *client, key, want string) {
	t.Helper()
	for deadline := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		c.send("GET", key)
		if got := c.bulk(); got == want {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s is %q, want %q", key, got, want)
		}
	}
}

// is checks a key's value.
func is(t *testing.T, c *client, key, want string) {
	t.Helper()
	c.send("GET", key)
	if got := c.bulk(); got != want {
		t.Errorf("%s is %q, want %q", key, got, want)
	}
}

// silent checks that nothing comes. For how long is no matter: it is seen beside
// what the proxy says of it.
func (c *client) silent() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	b, err := c.in.ReadByte()
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		c.t.Errorf("read %q, %v", b, err)
	}
	c.conn.SetReadDeadline(time.Now().Add(hang))
}

// ended is how the connection has ended.
func (c *client) ended() error {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err == nil {
		c.t.Errorf("read %q", line)
	}
	return err
}

func TestCutResetsConnectionsAndRefusesNewOnes(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Cut()
	if err := far.ended(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it ended with %v", err)
	}
	if tally := p.Tally(); tally != (Tally{Cut: 1}) {
		t.Errorf("%+v", tally)
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(hang))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a new one ended with %v", err)
		}
	}
	settles(t, p, Tally{Cut: 1, Refused: 1})
	p.Heal()
	if got := dial(t, "tcp", p.Addr()).ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	if got := near.ask("PING"); got != "+PONG" {
		t.Errorf("PING past the proxy: %q", got)
	}
}

func TestHoleSwallowsRequests(t *testing.T) {
	for _, way := range []Way{Requests, Both} {
		p, far, near := behindProxy(t)
		near.ask("SET", "k", "5")
		p.Hole(way)
		far.send("INCR", "k")
		sent := len("*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n")
		settles(t, p, Tally{Swallowed: sent})
		young := dial(t, "tcp", p.Addr())
		young.send("INCR", "k")
		settles(t, p, Tally{Swallowed: 2 * sent})
		far.silent()
		young.silent()
		is(t, near, "k", "5")
		p.Heal()
		for _, c := range []*client{far, young} {
			if err := c.ended(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("it ended with %v", err)
			}
		}
		settles(t, p, Tally{Swallowed: 2 * sent, Cut: 2})
		if got := dial(t, "tcp", p.Addr()).ask("INCR", "k"); got != ":6" {
			t.Errorf("INCR: %q", got)
		}
	}
}

func TestHoleSwallowsRepliesAndTheRequestsRun(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Hole(Replies)
	far.send("SET", "k", "v")
	settles(t, p, Tally{Swallowed: len("+OK\r\n")})
	is(t, near, "k", "v")
	far.silent()
	p.Heal()
	if err := far.ended(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it ended with %v", err)
	}
}

func TestRepliesComeThroughAHoleForRequests(t *testing.T) {
	p, far, _ := behindProxy(t)
	p.Lag(200 * time.Millisecond)
	far.send("PING")
	settles(t, p, Tally{Lagged: 1})
	p.Hole(Requests)
	if got := far.line(); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	far.send("PING")
	settles(t, p, Tally{Lagged: 1, Swallowed: len("*1\r\n$4\r\nPING\r\n")})
}

func TestHoleSwallowsTheEndOfAConnection(t *testing.T) {
	s := start(t, Options{})
	p, err := NewProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	far, other := dial(t, "tcp", p.Addr()), dial(t, "tcp", p.Addr())
	for _, c := range []*client{far, other} {
		c.ask("PING")
	}
	p.Hole(Replies)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	far.silent()
	p.Heal()
	for _, c := range []*client{far, other} {
		c.ended()
	}
}

func TestHeldRequestsArriveWhenHealed(t *testing.T) {
	p, far, near := behindProxy(t)
	near.ask("SET", "k", "5")
	p.Hold(Requests)
	far.send("INCR", "k")
	settles(t, p, Tally{Held: 1})
	far.silent()
	is(t, near, "k", "5")
	far.conn.Close() // which does not take back what was sent
	p.Heal()
	becomes(t, near, "k", "6")
	settles(t, p, Tally{Held: 1})
}

func TestHeldRepliesArriveWhenHealed(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Hold(Replies)
	far.send("INCR", "k")
	settles(t, p, Tally{Held: 1})
	is(t, near, "k", "1")
	far.silent()
	p.Heal()
	if got := far.line(); got != ":1" {
		t.Errorf("INCR: %q", got)
	}
	settles(t, p, Tally{Held: 1})
}

func TestLaggingRepliesComeLateAndTogether(t *testing.T) {
	p, far, near := behindProxy(t)
	const lag, count = 300 * time.Millisecond, 50
	near.ask("SET", "k", "0")
	began := time.Now()
	p.Lag(lag)
	for i := range count {
		far.send("INCR", "k")
		becomes(t, near, "k", fmt.Sprint(i+1)) // none waits for the reply before
	}
	settles(t, p, Tally{Lagged: count})
	for i := range count {
		if got := far.line(); got != fmt.Sprintf(":%d", i+1) {
			t.Fatalf("INCR: %q", got)
		}
		if i == 0 && time.Since(began) < lag {
			t.Errorf("the first came after %v", time.Since(began))
		}
	}
	p.Heal()
	far.ask("PING")
	settles(t, p, Tally{Lagged: count})
}

func TestLateRequestsArriveWhenTheirClientHasGone(t *testing.T) {
	p, far, near := behindProxy(t)
	const late = 200 * time.Millisecond
	began := time.Now()
	p.Late(late)
	far.send("SET", "k", "v")
	settles(t, p, Tally{Late: 1})
	far.conn.Close()
	p.Heal() // and it keeps its time
	if got := dial(t, "tcp", p.Addr()).ask("SETNX", "k", "overtook"); got != ":1" && time.Since(began) < late {
		t.Errorf("SETNX: %q", got)
	}
	becomes(t, near, "k", "v")
	if took := time.Since(began); took < late {
		t.Errorf("it arrived after %v", took)
	}
}

func TestLostRequestHasRunOnceAndItsConnectionEnds(t *testing.T) {
	p, far, near := behindProxy(t)
	near.ask("SET", "k", "5")
	p.Lose(1)
	far.send("INCR", "k")
	if err := far.ended(); err != io.EOF {
		t.Errorf("it ended with %v", err)
	}
	is(t, near, "k", "6")
	settles(t, p, Tally{Lost: 1})
	if got := dial(t, "tcp", p.Addr()).ask("INCR", "k"); got != ":7" {
		t.Errorf("the next INCR: %q", got)
	}
}

func TestLateRequestIsNotOvertakenOnItsConnection(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Late(100 * time.Millisecond)
	far.send("SET", "k", "first")
	settles(t, p, Tally{Late: 1})
	p.Late(0)
	if got := far.ask("SET", "k", "second") + far.line(); got != "+OK+OK" {
		t.Errorf("SET: %q", got)
	}
	is(t, near, "k", "second")
	settles(t, p, Tally{Late: 1})
}

func TestConnectionEndsWhenAllThatIsLostHasRun(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Lose(2)
	fmt.Fprintf(far.conn, "INCR k\r\nBLPOP list 0\r\n")
	settles(t, p, Tally{Lost: 1})
	far.silent()
	near.ask("RPUSH", "list", "v")
	far.ended()
	settles(t, p, Tally{Lost: 2})
	if got := near.ask("LLEN", "list"); got != ":0" {
		t.Errorf("LLEN: %q", got)
	}
}

func TestWhatComesBehindALostRequestDoesNotRun(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Lose(2, "incr")
	fmt.Fprintf(far.conn, "PING\r\nINCR a\r\nPING\r\nINCR b\r\nINCR c\r\n")
	if got := far.line(); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	far.ended()
	settles(t, p, Tally{Lost: 2})
	near.send("MGET", "a", "b", "c")
	if got := near.line() + near.bulk() + near.bulk() + near.line(); got != "*311$-1" {
		t.Errorf("MGET: %q", got)
	}
}

func TestMutedRequestHasRunAndItsConnectionStays(t *testing.T) {
	p, far, near := behindProxy(t)
	p.Mute(1, "incr")
	if got := far.ask("PING"); got != "+PONG" {
		t.Errorf("PING: %q", got)
	}
	far.send("INCR", "k")
	settles(t, p, Tally{Muted: 1})
	is(t, near, "k", "1")
	if got := far.ask("INCR", "k"); got != ":2" {
		t.Errorf("the next INCR: %q", got)
	}
}

func TestServerThatDiesEndsTheConnection(t *testing.T) {
	s := start(t, Options{})
	p, err := NewProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	far := dial(t, "tcp", p.Addr())
	far.ask("PING")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	far.ended()
	young := dial(t, "tcp", p.Addr())
	young.send("PING")
	if err := young.ended(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("with nobody there it ended with %v", err)
	}
}

func TestClosedProxyLeavesNoGoroutine(t *testing.T) {
	faults := map[string]func(p *Proxy){
		"none":  func(p *Proxy) {},
		"cut":   (*Proxy).Cut,
		"hole":  func(p *Proxy) { p.Hole(Both) },
		"hold":  func(p *Proxy) { p.Hold(Both) },
		"held":  func(p *Proxy) { p.Hold(Replies) },
		"late":  func(p *Proxy) { p.Late(time.Hour) },
		"lag":   func(p *Proxy) { p.Lag(time.Hour) },
		"lose":  func(p *Proxy) { p.Lose(1) },
		"mute":  func(p *Proxy) { p.Mute(1) },
		"heals": func(p *Proxy) { p.Hole(Both); p.Heal() },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			p, far, _ := behindProxy(t)
			dial(t, "tcp", p.Addr()) // which asks for nothing
			if proxyGoroutines() == 0 {
				t.Fatal("none while it works: the test shows nothing")
			}
			fault(p)
			far.send("PING")
			p.Close()
			p.Close()
			if n := proxyGoroutines(); n > 0 {
				t.Errorf("%d are left", n)
			}
			far.conn.Close()
		})
	}
}

// proxyGoroutines counts those of proxies.
func proxyGoroutines() (count int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "redisproc.(*link)") || strings.Contains(stack, "redisproc.(*Proxy).accept") {
			count++
		}
	}
	return count
}
