package respfake

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// A wire is a client that hides nothing: requests go out as they are, replies come
// back as one line of text that tells every RESP type apart.
type wire struct {
	net.Conn
	r *bufio.Reader
}

func connect(t *testing.T, s *Server) *wire {
	t.Helper()
	c, err := s.Dialer()(context.Background(), "tcp", "127.0.0.1:6379")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return newWire(c)
}

func newWire(c net.Conn) *wire { return &wire{c, bufio.NewReader(c)} }

func request(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// send writes requests, each of them one line, in one piece.
func (w *wire) send(t *testing.T, lines ...string) {
	t.Helper()
	var b []byte
	for _, line := range lines {
		b = append(b, request(strings.Fields(line)...)...)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
}

func (w *wire) receive(t *testing.T) string {
	t.Helper()
	reply, err := readReply(w.r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func (w *wire) ask(t *testing.T, line string) string {
	t.Helper()
	w.send(t, line)
	return w.receive(t)
}

func (w *wire) askArgs(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := w.Write(request(args...)); err != nil {
		t.Fatal(err)
	}
	return w.receive(t)
}

// want asks and compares.
func (w *wire) want(t *testing.T, line, reply string) {
	t.Helper()
	if got := w.ask(t, line); got != reply {
		t.Errorf("%s: got %s, want %s", line, got, reply)
	}
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[0], line[1:]
	n, _ := strconv.Atoi(rest)
	switch kind {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		return fmt.Sprintf("%c%q", kind, b[:n]), nil
	case '*', '%':
		if kind == '%' {
			n *= 2
		}
		parts := make([]string, 0, max(n, 0))
		for range n {
			part, err := readReply(r)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return fmt.Sprintf("%c[%s]", kind, strings.Join(parts, " ")), nil
	}
	return line, nil
}
