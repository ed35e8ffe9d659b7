package redlock

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// slowLink is a network on which requests to a real server take as long as they
// are told. What a client has written arrives even if it closes the connection
// meanwhile, as on any network.
type slowLink struct {
	conns sync.WaitGroup // that something may still arrive on

	mu       sync.Mutex // guards what follows
	delay    time.Duration
	underWay int // writes that have not arrived
}

// set makes requests take so long from now on; those under way keep their time.
func (l *slowLink) set(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// clear reports whether everything has arrived.
func (l *slowLink) clear() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.underWay == 0
}

// dial fits Dialer of go-redis' Options.
func (l *slowLink) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	socket, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &slowConn{Conn: socket, link: l, more: make(chan struct{}, 1)}
	l.conns.Go(c.deliver)
	return c, nil
}

// slowConn is the client's end of a connection on a slowLink.
type slowConn struct {
	net.Conn // to the server
	link     *slowLink
	more     chan struct{} // capacity 1: there is something to deliver

	mu     sync.Mutex // guards what follows
	queue  []parcel
	closed bool
}

type parcel struct {
	due   time.Time
	bytes []byte
}

func (c *slowConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.link.mu.Lock()
	due := time.Now().Add(c.link.delay)
	c.link.underWay++
	c.link.mu.Unlock()
	if n := len(c.queue); n > 0 && c.queue[n-1].due.After(due) {
		due = c.queue[n-1].due // nothing overtakes
	}
	c.queue = append(c.queue, parcel{due, append([]byte(nil), b...)})
	c.rouse()
	return len(b), nil
}

// Close ends reading at once. The server sees the end behind all that was
// written.
func (c *slowConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.Conn.SetReadDeadline(time.Unix(1, 0))
	c.rouse()
	return nil
}

func (c *slowConn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *slowConn) SetWriteDeadline(t time.Time) error { return nil }

func (c *slowConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return os.ErrDeadlineExceeded
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *slowConn) rouse() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// deliver takes what was written to the server. It ends when the connection has
// been closed and everything has arrived.
func (c *slowConn) deliver() {
	for {
		c.mu.Lock()
		var next parcel
		empty, closed := len(c.queue) == 0, c.closed
		if !empty {
			next = c.queue[0]
		}
		c.mu.Unlock()
		switch {
		case !empty:
			time.Sleep(time.Until(next.due))
			c.Conn.Write(next.bytes) // lost if the server has hung up
			c.mu.Lock()
			c.queue = c.queue[1:]
			c.mu.Unlock()
			c.link.mu.Lock()
			c.link.underWay--
			c.link.mu.Unlock()
		case closed:
			c.Conn.Close()
			return
		default:
			<-c.more
		}
	}
}
