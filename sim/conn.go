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
	next     event      // the first of them returns
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

	// The client's end, of what it waits for.
	sent     time.Duration
	overdue  event      // its time is up
	answered bool       // the answer has come
	result   chan error // how it ended
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

// ask sends a request, whose result then says how it ended.
func (c *conn) ask(r *request, limit time.Duration) error {
	w := c.link.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.link.client.gone {
		return errHungUp
	}
	r.sent, r.result = w.now, make(chan error, 1)
	if len(c.asking) > 0 && c.ended == nil {
		w.beside++
		c.checkKeys(r)
	}
	c.asking = append(c.asking, r)
	if c.ended != nil {
		// That takes a moment too: other lanes may be loading flights in this one, and
		// what comes of the failure must not interfere with them.
		if len(c.asking) == 1 { // otherwise it returns after those before it
			d := w.dice.on(forReply, uint64(c.link.client.id), uint64(c.link.node.id), c.link.flights)
			c.next.at = w.now + d.between(time.Microsecond, 20*time.Microsecond)
			w.agenda.set(&c.next)
		}
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

// fail ends the connection at the client's end, and with it all calls that are under
// way. world.mu is held.
func (c *conn) fail(why error) {
	if c.ended == nil || why == errHungUp {
		c.ended = why
	}
	c.finish()
}

// finish has the first of the calls under way return, if it can, and then the next.
// Each has a moment of its own, so that it is not for the scheduler to say which
// comes first. world.mu is held.
func (c *conn) finish() {
	if !c.settled() {
		return
	}
	r := c.asking[0]
	if c.ended == nil {
		c.hear(r)
	}
	c.asking = c.asking[1:]
	w := c.link.client.world
	w.agenda.drop(&r.overdue)
	c.link.client.unhold(&r.overdue)
	r.result <- c.ended
	if c.settled() {
		c.next.at = w.now + 1
		w.agenda.set(&c.next)
	}
}

// settled reports whether the first of the calls under way, if any are, can return.
func (c *conn) settled() bool {
	return len(c.asking) > 0 && (c.ended != nil || c.asking[0].answered)
}

// hear is the client reading an answer.
func (c *conn) hear(r *request) {
	for i, op := range r.into {
		for j := range r.ops { // they may be in another order
			if o := &r.ops[j]; o.Kind == op.Kind && o.Key == op.Key && o.Token == op.Token {
				r.into[i].Reply = o.Reply
			}
		}
	}
	if r.kind == asksHello {
		c.peer.RoundTrip = c.link.client.world.now - r.sent
	}
	if r.last {
		c.ended = errReset
	}
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

// drain has the node read what lies in the socket.
func (c *conn) drain() {
	for c.open && c.link.node.stopped == 0 && len(c.unread) > 0 {
		r := c.unread[0]
		c.unread = c.unread[1:]
		c.link.node.reads(r)
	}
}

// answer sends a node's answer on its way. At the client it waits for those that
// were sent before it on the same connection.
func (c *conn) answer(r *request) {
	c.link.toClient(func() {
		r.answered = true
		if len(c.asking) > 0 && c.asking[0] == r { // not given up
			c.finish()
		}
	})
}

// reset tells the client that the connection has ended, perhaps before answers that
// were sent earlier: those are lost then.
func (c *conn) reset() { c.link.toClient(func() { c.fail(errReset) }) }
