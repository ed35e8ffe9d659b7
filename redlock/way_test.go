package redlock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// way is one client's own way to a node, which can be long, or shut, while others
// reach the node as ever.
type way struct {
	Node

	mu   sync.Mutex    // guards what follows
	late time.Duration // before a flight gets there
	shut bool          // connections end, and there are no new ones
}

var errShut = errors.New("no route to the node")

// ways are one client's ways to the nodes.
func ways(nodes []Node) (ways []*way, all []Node) {
	for _, n := range nodes {
		w := &way{Node: n}
		ways, all = append(ways, w), append(all, w)
	}
	return ways, all
}

func (w *way) set(late time.Duration, shut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late, w.shut = late, shut
}

func (w *way) get() (late time.Duration, shut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late, w.shut
}

func (w *way) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	if _, shut := w.get(); shut {
		return nil, errShut
	}
	c, err := w.Node.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	sent := make(chan struct{})
	close(sent)
	return &wayConn{memConn: c.(*memConn), way: w, closed: make(chan struct{}), sent: sent}, nil
}

type wayConn struct {
	*memConn
	way    *way
	hangUp sync.Once
	closed chan struct{}

	mu   sync.Mutex    // guards sent
	sent chan struct{} // closed when what was sent last is there
}

func (c *wayConn) Send(_ context.Context, flight []*Op) error {
	late, shut := c.way.get()
	if shut {
		c.Close()
		return errShut
	}
	there := make(chan struct{})
	c.mu.Lock()
	before := c.sent
	c.sent = there
	c.mu.Unlock()
	if late > 0 {
		select {
		case <-time.After(late):
		case <-c.closed:
			return errMemEnded
		}
	}
	select {
	case <-before: // nothing overtakes what was sent before it
	case <-c.closed:
		return errMemEnded
	}
	f, err := c.post(flight)
	if err != nil {
		return err
	}
	close(there)
	return c.fetch(f)
}

func (c *wayConn) Close() error {
	c.hangUp.Do(func() { close(c.closed) })
	return c.memConn.Close()
}
