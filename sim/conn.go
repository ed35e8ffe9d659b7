package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/redlock"
)

// conn is one connection: its client's end, its node's end, and what is between.
type conn struct {
	link  *link
	limit time.Duration
	hello request

	// The client's end.
	ended    error      // nothing more can be sent
	asking   []*request // the calls that are under way, in the order of sending
	failing  bool       // the next of them is about to hear that the connection has ended
	gathered chan struct{}

	// Between.
	transit []*request // on their way to the node, in the order of sending

	// The node's end.
	peer   redlock.Peer
	run    int
	open   bool
	unread []*request
}

// request is what a client sends on a connection.
type request struct {
	conn *conn
	kind asks
	ops  []redlock.Op
	into []*redlock.Op // whose replies the client waits for
	id   int64         // for asksKill
	err  error
	last bool // the connection ends with the answer
	here bool // it has arrived
	back bool // the answer has

	sent    time.Duration
	result  chan error // how the call has ended
	overdue event      // its time is up
}

type asks uint8

const (
	asksHello asks = iota
	asksFlight
	asksKill
	asksEnd // the client has closed the connection
)

// Peer implements redlock.Conn.
func (c *conn) Peer() redlock.Peer { return c.peer }

// Gather implements redlock.Conn: it returns when nothing else moves in the world.
func (c *conn) Gather() {
	w := c.link.client.world
	w.mu.Lock()
	w.parked = append(w.parked, c)
	w.mu.Unlock()
	<-c.gathered
}

// Send implements redlock.Conn.
func (c *conn) Send(_ context.Context, flight []*redlock.Op) error {
	r := &request{conn: c, kind: asksFlight, into: flight, ops: make([]redlock.Op, 0, len(flight))}
	for _, op := range flight {
		r.ops = append(r.ops, *op)
	}
	return c.call(r)
}

// Kill implements redlock.Conn.
func (c *conn) Kill(_ context.Context, id int64) error {
	r := &request{conn: c, kind: asksKill, id: id}
	if err := c.call(r); err != nil {
		return err
	}
	return r.err
}

// Facts implements redlock.Conn. No client here asks.
func (c *conn) Facts(context.Context, string, clock.Clock) (*redlock.Facts, error) {
	return nil, errors.ErrUnsupported
}

// Close implements redlock.Conn.
func (c *conn) Close() error {
	w := c.link.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	c.close()
	return nil
}

func (c *conn) close() {
	if c.ended != errHungUp && !c.link.client.gone {
		c.link.send(&request{conn: c, kind: asksEnd})
	}
	c.fail(errHungUp)
}

// call sends a request and waits for its answer.
func (c *conn) call(r *request) error {
	if err := c.ask(r, c.limit); err != nil {
		return err
	}
	return <-r.result
}

// ask sends a request, whose answer then comes as r.result.
func (c *conn) ask(r *request, limit time.Duration) error {
	w := c.link.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.link.client.gone {
		return errHungUp
	}
	r.sent, r.result = w.now, make(chan error, 1)
	if len(c.asking) > 0 {
		w.beside++
		c.checkKeys(r)
	}
	c.asking = append(c.asking, r)
	if c.ended != nil {
		c.failSoon()
		return nil
	}
	r.overdue = event{
		at: w.now + c.link.client.clock.real(limit), rank: c.link.rank(rankLimit), whose: c.link.client,
		do: func() { c.fail(errTimeout) },
	}
	w.agenda.set(&r.overdue)
	c.link.send(r)
	return nil
}

// checkKeys: flights that are under way at once are for different keys.
func (c *conn) checkKeys(r *request) {
	for _, other := range c.asking {
		for _, a := range other.ops {
			for _, b := range r.ops {
				if a.Key == b.Key {
					c.link.client.world.violates("%s has two flights to %s in the air with %s", c.link.client.name, c.link.node.name, a.Key)
				}
			}
		}
	}
}

// soon has something happen at the client's end in a moment: others may be loading
// flights in this one, and what comes of it must not interfere with them.
func (c *conn) soon(do func()) {
	w := c.link.client.world
	d := w.dice.on(forReply, uint64(c.link.client.id), uint64(c.link.node.id), c.link.flights)
	w.agenda.set(&event{
		at: w.now + d.between(time.Microsecond, 20*time.Microsecond), rank: c.link.rank(rankReply), whose: c.link.client, do: do,
	})
}

// fail ends the connection at the client's end. world.mu is held.
func (c *conn) fail(why error) {
	if c.ended == nil || why == errHungUp {
		c.ended = why
	}
	c.finish(why)
	c.failSoon()
}

// failSoon ends the calls that are under way when the connection has ended, one at a
// time.
func (c *conn) failSoon() {
	if len(c.asking) == 0 || c.failing {
		return
	}
	c.failing = true
	c.soon(func() {
		c.failing = false
		c.finish(c.ended)
		c.failSoon()
	})
}

// finish ends the first call that is under way, if one is. world.mu is held.
func (c *conn) finish(err error) {
	if len(c.asking) > 0 {
		r := c.asking[0]
		c.asking = c.asking[1:]
		c.link.client.world.agenda.drop(&r.overdue)
		c.link.client.unhold(&r.overdue)
		r.result <- err
	}
}

// drain has the node read what lies in the socket.
func (c *conn) drain() {
	for c.open && c.link.node.stopped == 0 && len(c.unread) > 0 {
		r := c.unread[0]
		c.unread = c.unread[1:]
		c.link.node.reads(r)
	}
}

// answer sends a node's answer on its way.
func (c *conn) answer(r *request) {
	c.link.toClient(func() {
		r.back = true
		c.deliver()
	})
}

// deliver hands out the answer to the first call that is under way, if it has come:
// answers come in the order of sending.
func (c *conn) deliver() {
	if len(c.asking) == 0 || !c.asking[0].back || c.ended != nil {
		return
	}
	r := c.asking[0]
	for i, op := range r.into {
		for j := range r.ops { // they may be in another order
			if o := &r.ops[j]; o.Kind == op.Kind && o.Key == op.Key && o.Token == op.Token {
				r.into[i].Reply = o.Reply
			}
		}
	}
	if r.last {
		c.fail(errReset)
		return
	}
	if r.kind == asksHello {
		c.peer.RoundTrip = c.link.client.world.now - r.sent
	}
	c.finish(nil)
	if len(c.asking) > 0 && c.asking[0].back {
		c.soon(c.deliver)
	}
}

// reset tells the client that the connection has ended.
func (c *conn) reset() { c.link.toClient(func() { c.fail(errReset) }) }
