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
	return &wayConn{Conn: c, way: w, ended: make(chan struct{})}, nil
}

type wayConn struct {
	Conn
	way   *way
	once  sync.Once
	ended chan struct{}
}

func (c *wayConn) Send(ctx context.Context, flight []*Op) error {
	late, shut := c.way.get()
	if shut {
		return errShut
	}
	if late > 0 {
		select {
		case <-time.After(late):
		case <-c.ended:
			return errMemEnded
		}
	}
	return c.Conn.Send(ctx, flight)
}

func (c *wayConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
