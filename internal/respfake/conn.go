package respfake

import (
	"net"
	"os"
	"syscall"
	"time"
)

// A conn is the client's end of a connection. Writing never blocks: the buffer
// has no limit. Reading waits on channels and timers only.
type conn struct {
	srv           *Server
	local, remote address
	ses           *session // the server's end

	// Guarded by srv.mu.
	in              stream // replies
	closed          bool
	broken          bool // the next write gets EPIPE
	readBy, writeBy time.Time
	changed         chan struct{} // closed and replaced when a blocked Read has to look again
}

var (
	_ net.Conn     = (*conn)(nil)
	_ syscall.Conn = (*conn)(nil)
)

func (c *conn) Read(b []byte) (int, error) {
	for {
		c.srv.mu.Lock()
		n, wait, err := c.tryRead(b)
		changed := c.changed
		c.srv.mu.Unlock()
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		wait.until(changed)
	}
}

// tryRead reads what is there. When that is nothing it returns how long a reader
// may wait before it has to look again, even if nothing changes.
func (c *conn) tryRead(b []byte) (int, patience, error) {
	now := time.Now()
	if c.closed {
		return 0, patience{}, c.fail("read", net.ErrClosed)
	}
	if passed(c.readBy, now) {
		return 0, patience{}, c.fail("read", os.ErrDeadlineExceeded)
	}
	n, err := c.in.read(now, b)
	if errno, ok := err.(syscall.Errno); ok {
		err = c.fail("read", os.NewSyscallError("read", errno))
	}
	var wait patience
	if at, ok := c.in.next(); ok {
		wait.shorten(at.Sub(now))
	}
	if !c.readBy.IsZero() {
		wait.shorten(c.readBy.Sub(now))
	}
	return n, wait, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	now := time.Now()
	switch {
	case c.closed:
		return 0, c.fail("write", net.ErrClosed)
	case passed(c.writeBy, now):
		return 0, c.fail("write", os.ErrDeadlineExceeded)
	case c.broken:
		return 0, c.fail("write", os.NewSyscallError("write", syscall.EPIPE))
	case c.ses.gone:
		// As with TCP, the peer's close is no error for the first write after it:
		// the bytes leave, and only the answer to them breaks the connection.
		c.broken = true
		return len(b), nil
	}
	c.ses.in.send(now.Add(c.srv.late), append([]byte(nil), b...))
	c.srv.poke()
	return len(b), nil
}

// Close wakes a blocked Read. What was written before still reaches the server.
func (c *conn) Close() error {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.closed = true
	c.in.discard()
	c.wake()
	if !c.ses.gone {
		c.ses.in.finish(time.Now().Add(c.srv.late), errClientClosed)
		c.srv.poke()
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error      { return c.setDeadline(t, true, true) }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.setDeadline(t, true, false) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(t, false, true) }

func (c *conn) setDeadline(t time.Time, read, write bool) error {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	if read {
		c.readBy = t
		c.wake()
	}
	if write {
		c.writeBy = t
	}
	return nil
}

func (c *conn) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: c.remote.network, Source: c.local, Addr: c.remote, Err: err}
}

// passed says whether a deadline is over; the zero time is none.
func passed(deadline, now time.Time) bool {
	return !deadline.IsZero() && !now.Before(deadline)
}

// patience is a time to wait; zero is without end.
type patience struct {
	limited bool
	d       time.Duration
}

func (p *patience) shorten(d time.Duration) {
	if !p.limited || d < p.d {
		p.limited, p.d = true, d
	}
}

// until waits for the channel or until patience is over.
func (p patience) until(ch <-chan struct{}) {
	if !p.limited {
		<-ch
		return
	}
	timer := time.NewTimer(p.d)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
	}
}

type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }
