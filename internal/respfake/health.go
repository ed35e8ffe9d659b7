package respfake

import (
	"errors"
	"io"
	"syscall"
	"time"
)

var (
	errUnread     = errors.New("respfake: unread bytes on an idle connection")
	errNoSyscalls = errors.New("respfake: there is no socket behind this connection")
)

// SyscallConn lets go-redis see what it sees on a socket: before it takes an idle
// connection from its pool it peeks, and drops one that the server has closed or
// that holds a reply nobody waited for. Without this a test would meet write
// errors that production never meets.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return peek{c}, nil }

type peek struct{ c *conn }

// Read reports what a peek at the socket would find. There is no descriptor to
// hand out, so the function is not called.
func (p peek) Read(func(fd uintptr) bool) error {
	p.c.srv.mu.Lock()
	defer p.c.srv.mu.Unlock()
	now := time.Now()
	switch at, ok := p.c.in.next(); {
	case p.c.closed:
		return io.ErrClosedPipe
	case p.c.in.readable(now):
		return errUnread
	case ok && !at.After(now):
		return io.EOF
	}
	return nil
}

func (peek) Write(func(fd uintptr) bool) error { return errNoSyscalls }
func (peek) Control(func(fd uintptr)) error    { return errNoSyscalls }
