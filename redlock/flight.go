package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// maxFlight is how many operations go to a node in one flight. On a slow link it
// bounds how many leases can be kept alive: a node does so many per round trip.
const maxFlight = 512

// A flight has two halves, and each carries its operations in the order of their
// kinds, whatever the order they were queued in. The second begins with the first
// acquire of a key that the first releases: who waits in line for a key is sent for
// together with the release before. So that a key's operations never overtake each
// other, a flight ends before
//   - anything else for a key after that key's release, which it would overtake, and
//   - a second acquire of a key, of which one at most may be granted.
//
// The other orders are safe: a release queued after its acquire still comes
// after it, and an extend never creates a key.
//
// It ends before anything, too, for a key that a flight in the air has. What that
// flight must be sent again for would otherwise come after what was queued behind it.

// cutter finds where a flight ends, and its halves.
type cutter struct {
	seen  map[string]passage // keys that have been acquired or released
	aloft map[string]bool    // the keys of flights in the air
	n     int                // how many operations have joined the flight
	half  int                // how many of them are the first half, 0 as long as there is no second
}

// passage is what a flight does to a key.
type passage uint8

const (
	untouched passage = iota
	freed             // by the first half, which does not acquire it
	acquired          // and not released since
	finished          // nothing more fits
)

// fits reports whether op may join the flight that the operations before it
// have joined.
func (c *cutter) fits(op *Op) bool {
	was := c.seen[op.Key]
	next := was
	switch {
	case c.aloft[op.Key] || was == finished:
		return false
	case op.Kind == OpAcquire && was != acquired:
		if was == freed && c.half == 0 {
			c.half = c.n
		}
		next = acquired
	case op.Kind == OpAcquire || was == freed:
		return false
	case op.Kind == OpRelease && was == untouched && c.half == 0:
		next = freed
	case op.Kind == OpRelease:
		next = finished
	}
	if next != was {
		if c.seen == nil {
			c.seen = make(map[string]passage)
		}
		c.seen[op.Key] = next
	}
	c.n++
	return true
}

// reset begins a flight, while those are in the air.
func (c *cutter) reset(flights []flight) {
	clear(c.seen)
	clear(c.aloft)
	c.n, c.half = 0, 0
	for i := range flights {
		if flights[i].departed.IsZero() {
			continue
		}
		if c.aloft == nil {
			c.aloft = make(map[string]bool)
		}
		for _, aloft := range flights[i].calls {
			c.aloft[aloft.op.Key] = true
		}
	}
}

// arrange appends the calls that fitted to dst, as the flight is to carry them: each half
// in the order of its kinds, each kind in the order of queueing.
func (c *cutter) arrange(dst, calls []*call) []*call {
	for _, half := range [2][]*call{calls[:c.half], calls[c.half:]} {
		for kind := OpAcquire; kind <= OpRelease && len(half) > 0; kind++ {
			for _, c := range half {
				if c.op.Kind == kind {
					dst = append(dst, c)
				}
			}
		}
	}
	return dst
}

// flight is what goes to a node at once.
type flight struct {
	calls    []*call
	ops      []Op // theirs, with the replies to them
	sent     []*Op
	departed clock.Instant // when it was sent; zero if it is on the ground
}

// load is what the node is to do.
func (f *flight) load() []*Op {
	for _, c := range f.calls {
		f.ops = append(f.ops, *c.op)
	}
	for i := range f.ops {
		f.sent = append(f.sent, &f.ops[i])
	}
	return f.sent
}

func (f *flight) unload() {
	clear(f.calls)
	clear(f.ops)
	f.calls, f.ops, f.sent = f.calls[:0], f.ops[:0], f.sent[:0]
}

// Nearby a node has one flight at a time: each is as deep as can be then, and a wait for
// the one before it is short. Of a node that is far, several are in the air, or an
// operation would wait half a round trip before it is sent.
//
// It is far when it took long to answer a first question, and no flight has been fast
// since. Where the machine is busy, deep flights take time nearby too.
const (
	maxFlights = 4
	faraway    = 500 * time.Microsecond
	eachOp     = 10 * time.Microsecond // that a flight may take longer and be fast
)

func (l *lane) isFar() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.far
}

// mayFly reports whether a flight may depart: one at a time, but to a node that is far.
func (l *lane) mayFly() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.far || !l.aloft()
}

// aloft reports whether a flight is in the air. l.mu is held.
func (l *lane) aloft() bool {
	for i := range l.flights { // not a copy: only when it departed is guarded by l.mu
		if !l.flights[i].departed.IsZero() {
			return true
		}
	}
	return false
}

// underWay is how long the oldest flight has been in the air, 0 if none is. l.mu is held.
func (l *lane) underWay(now clock.Instant) time.Duration {
	var longest time.Duration
	for i := range l.flights {
		if f := &l.flights[i]; !f.departed.IsZero() {
			longest = max(longest, now.Lower(f.departed))
		}
	}
	return longest
}

// load puts the next flight together, into f: debts that are due, then what is queued,
// up to where the flight must end.
func (l *lane) load(conn Conn, f *flight) {
	conn.Gather()
	now := l.clock.Now()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutter.reset(l.flights[:])
	l.loading = l.collect(l.loading[:0], now)
	taken := 0
	for _, c := range l.queue {
		if c.state == queued {
			if len(l.loading) == maxFlight || !l.cutter.fits(c.op) {
				break
			}
			c.state, c.gen = written, l.gen
			if c.op.Kind == OpExtend && c.of != nil {
				c.of.extend = c
			}
			l.loading = append(l.loading, c)
		} else {
			l.dead--
		}
		taken++
	}
	rest := copy(l.queue, l.queue[taken:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	f.calls = l.cutter.arrange(f.calls[:0], l.loading)
	if len(f.calls) > 0 {
		f.departed = now
		l.carrying += len(f.calls)
	}
}

// land takes a flight's answers to whoever asked. err is why the connection
// has ended, if it has.
func (l *lane) land(f *flight, err error) {
	now := l.clock.Now()
	l.mu.Lock()
	if now.Lower(f.departed) < faraway+time.Duration(len(f.calls))*eachOp {
		l.far = false
	}
	f.departed = clock.Instant{}
	l.carrying -= len(f.calls)
	for i, c := range f.calls {
		reply := &f.ops[i].Reply
		if reply.Vote == quorum.Pending {
			*reply = Reply{Vote: quorum.Unknown, Err: err}
		}
		c.state = answered
		if c.op.Kind <= OpExtend && c.round != nil && reply.Vote == quorum.Granted {
			if why := l.voter.quarantined(l.at(c.round.start), l.at(now)); why != nil {
				reply.Err = why
			}
		}
		vote := reply.Vote
		c.cutOff = err != nil && vote == quorum.Unknown
		c.qualify(reply)
		c.reply = settled(reply)
		if c.debt != nil {
			l.settle(c.debt, vote, err != nil, now)
		} else if c.op.Kind == OpRelease && vote == quorum.Unknown {
			l.owe(c, now)
		} else if c.undo {
			l.owe(&call{op: c.op, of: c}, now)
		}
	}
	waiting := l.closing || len(l.queue) > l.dead || len(l.debts) > 0
	l.mu.Unlock()
	for _, c := range f.calls {
		if c.round != nil {
			c.round.answer(int(c.node), c.reply, now)
		}
	}
	f.unload()
	if waiting {
		l.rouse() // what this flight kept from another, or from being done
	}
}
