package sim

import (
	"context"
	"errors"
	"time"

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
	if w.plan.Apart {
		if l.client.place%len(w.nodes) == l.node.id {
			return weather.Delay / 8
		}
		return weather.Delay
	}
	if d.chance(weather.Slow) {
		w.count("slow")
		return d.about(time.Millisecond, weather.Slowest)
	}
	return d.between(weather.Delay/8, weather.Delay)
}

// Connect implements redlock.Node.
func (l *link) Connect(ctx context.Context, limit time.Duration) (redlock.Conn, error) {
	c := &conn{link: l, limit: limit, gathered: make(chan struct{}, 1)}
	c.next = event{whose: l.client, rank: l.rank(rankReply), do: c.finish}
	c.hello.conn, c.hello.kind = c, asksHello
	l.last = c
	if err := c.ask(&c.hello, dialTimeout); err != nil {
		return nil, err
	}
	var err error
	select {
	case err = <-c.hello.result:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
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
