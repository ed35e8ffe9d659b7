package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// dialTimeout is how long a connection is tried for.
const dialTimeout = time.Second + 7*time.Millisecond

var (
	errReset    = errors.New("connection reset")
	errRefused  = errors.New("connection refused")
	errTimeout  = errors.New("i/o timeout")
	errHungUp   = errors.New("connection closed")
	errLoading  = errors.New("LOADING the dataset is being read")
	errReadOnly = errors.New("READONLY no writes to a replica")
	errOOM      = errors.New("OOM command not allowed")
	errNoPerm   = errors.New("NOPERM no permissions")
)

// unread is the answer to a command that is refused before it is looked at.
func unread(op *redlock.Op, why error) redlock.Reply {
	return redlock.Reply{
		Vote: quorum.Unknown, Err: why,
		Nothing: op.Kind == redlock.OpAcquire && (op.Counter == "" || why != errNoPerm),
	}
}

// link is the way from a client to a node, and the node as that client has it.
type link struct {
	client *client
	node   *node

	flights uint64 // how many have been sent, which is what draws are keyed by
	cutOut  int    // not 0: nothing gets to the node; it does when that is over
	cutBack int    // not 0: nothing comes back
	last    *conn  // the connection that was made last, or is being made
	out     []*request
	back    []func()
}

func (l *link) String() string { return l.node.name }

// delay is how long something takes on the way.
func (l *link) delay(purpose uint64) time.Duration {
	w := l.client.world
	d := w.dice.on(purpose, uint64(l.client.id), uint64(l.node.id), l.flights)
	weather := &w.plan.Weather
	if w.calm {
		return d.between(20*time.Microsecond, 200*time.Microsecond)
	}
	if d.chance(weather.Slow) {
		w.count("slow")
		return d.about(time.Millisecond, weather.Slowest)
	}
	return d.between(weather.Delay/8, weather.Delay)
}

// Connect implements redlock.Node.
func (l *link) Connect(ctx context.Context, limit time.Duration) (redlock.Conn, error) {
	c := &conn{link: l, limit: limit, result: make(chan error, 1), gathered: make(chan struct{}, 1)}
	c.overdue = event{whose: l.client, rank: l.client.rank(rankLimit), do: func() { c.fail(errTimeout) }}
	c.hello.conn, c.hello.kind = c, asksHello
	l.last = c
	if err := c.ask(&c.hello, dialTimeout); err != nil {
		return nil, err
	}
	var err error
	select {
	case err = <-c.result:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// conn is one connection: its client's end, its node's end, and what is between.
type conn struct {
	link  *link
	limit time.Duration
	hello request

	// The client's end.
	ended    error      // nothing more can be sent
	asking   *request   // the call that is under way
	result   chan error // how it ended
	overdue  event      // its time is up
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
	r := &request{conn: c, kind: asksFlight, into: flight}
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
	return <-c.result
}

// ask sends a request, whose answer then comes as c.result.
func (c *conn) ask(r *request, limit time.Duration) error {
	w := c.link.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.link.client.gone {
		return errHungUp
	}
	if c.ended != nil {
		return c.ended
	}
	c.asking = r
	c.overdue.at = w.now + c.link.client.clock.real(limit)
	w.agenda.set(&c.overdue)
	c.link.send(r)
	return nil
}

// fail ends the connection at the client's end. world.mu is held.
func (c *conn) fail(why error) {
	if c.ended == nil || why == errHungUp {
		c.ended = why
	}
	c.finish(why)
}

// finish ends the call that is under way, if one is. world.mu is held.
func (c *conn) finish(err error) {
	if c.asking != nil {
		c.asking = nil
		c.link.client.world.agenda.drop(&c.overdue)
		c.link.client.unhold(&c.overdue)
		c.result <- err
	}
}

// send puts a request on its way. What is sent on one connection arrives in the
// order of sending. world.mu is held.
func (l *link) send(r *request) {
	c, w := r.conn, l.client.world
	l.flights++
	c.transit = append(c.transit, r)
	w.at(w.now+l.delay(forRequest), l.rank(rankArrive), true, func() { l.arrive(r) })
}

// arrive is a request at the node's machine, which has it wait for those that were
// sent before it on the same connection.
func (l *link) arrive(r *request) {
	if l.cutOut > 0 { // it will be sent again
		l.out = append(l.out, r)
		return
	}
	r.here = true
	for c := r.conn; len(c.transit) > 0 && c.transit[0].here; {
		next := c.transit[0]
		c.transit = c.transit[1:]
		l.enter(next)
	}
}

// enter is a request at the node's process.
func (l *link) enter(r *request) {
	n, c := l.node, r.conn
	switch {
	case !n.up && n.silent, r.kind == asksEnd && !c.open:
	case r.kind == asksHello && (!n.up || n.refuses > 0):
		l.toClient(func() { c.fail(errRefused) })
	case !n.up || r.kind != asksHello && (!c.open || c.run != n.run):
		c.reset()
	default:
		if r.kind == asksHello {
			c.open, c.run = true, n.run
			n.sockets = append(n.sockets, c)
		}
		if n.stopped > 0 || len(c.unread) > 0 {
			c.unread = append(c.unread, r)
			return
		}
		n.reads(r)
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
		if c.asking != r {
			return // given up
		}
		for i, op := range r.into {
			for j := range r.ops { // they may be in another order
				if o := &r.ops[j]; o.Kind == op.Kind && o.Key == op.Key && o.Token == op.Token {
					r.into[i].Reply = o.Reply
				}
			}
		}
		var err error
		if r.last {
			c.ended = errReset
			err = errReset
		}
		c.finish(err)
	})
}

// reset tells the client that the connection has ended.
func (c *conn) reset() { c.link.toClient(func() { c.fail(errReset) }) }

// toClient has something happen at the client's end after the way back.
func (l *link) toClient(do func()) {
	w := l.client.world
	if l.client.gone {
		return
	}
	arrives := func() {
		if l.cutBack > 0 {
			l.back = append(l.back, do)
			return
		}
		if !l.client.gone {
			do()
		}
	}
	l.flights++
	e := &event{at: w.now + l.delay(forReply), rank: l.rank(rankReply), whose: l.client, do: arrives}
	w.agenda.set(e)
}

// heal lets through again what was held back.
func (l *link) heal() {
	w := l.client.world
	d := w.dice.on(forHealing, uint64(l.client.id), uint64(l.node.id), uint64(w.now))
	if l.cutOut == 0 {
		out := l.out
		l.out = nil
		for _, r := range out {
			w.at(w.now+d.about(time.Millisecond, 200*time.Millisecond), l.rank(rankArrive), true, func() { l.arrive(r) })
		}
	}
	if l.cutBack == 0 {
		back := l.back
		l.back = nil
		for _, do := range back {
			e := &event{
				at: w.now + d.about(time.Millisecond, 200*time.Millisecond), rank: l.rank(rankReply), whose: l.client,
				do: func() {
					if !l.client.gone {
						do()
					}
				},
			}
			w.agenda.set(e)
		}
	}
}

func (l *link) rank(kind uint64) uint64 {
	return l.client.rank(kind) + uint64(l.node.id)
}
