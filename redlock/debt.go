package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// debt is a release that a lane owes its node: of an attempt that failed, or of
// a lease whose release could not be sent or got no answer. Debts go out before
// anything else. A debt can be paid late, after the key has a new holder: only
// the token it names is deleted.
type debt struct {
	op    Op
	tries int
	again time.Duration // when to send it next, on the lane's clock
	since time.Duration // when the key may have been set last: it is gone a TTL later
	// unread: the acquire may still lie unread in a connection that has ended,
	// so no time is long enough until that connection is known to be gone.
	unread bool
	// repeat: that connection could not be killed, so the release goes on being
	// sent until the key would have expired.
	repeat bool
}

// at is now on the lane's own clock, which must not run ahead: a debt is given
// up when its key has surely gone.
func (l *lane) at(now clock.Instant) time.Duration { return now.Lower(l.born) }

// owe remembers c, the release of a key, unless its acquire is known to have
// set nothing. Anything but a release is not owed. l.mu is held.
func (l *lane) owe(c *call, now clock.Instant) {
	if c.of == nil || c.op.Kind == OpExtend {
		return
	}
	op := Op{Kind: OpRelease, Key: c.op.Key, Token: c.op.Token, TTL: c.op.TTL}
	if e := c.of.extend; e != nil && l.mayCome(e) {
		op.TTL *= 2 // it may be read at the key's last moment
	}
	var unread bool
	switch c.of.state {
	case written: // its reply is not ours to read
		unread = true
	case answered:
		if c.of.reply.Vote == quorum.Denied || c.of.reply.Nothing {
			return
		}
		unread = c.of.cutOff && c.of.gen == l.gen
	default:
		return // it was never sent
	}
	l.debts = append(l.debts, debt{
		op:     op,
		since:  l.at(now),
		unread: unread,
		repeat: l.lingers(c.of),
	})
}

// mayCome reports whether a call may still be carried out, by all that is known here.
// l.mu is held.
func (l *lane) mayCome(c *call) bool {
	return c.state == written || c.cutOff && (c.gen == l.gen || l.haunted)
}

// lingers reports whether the acquire went unanswered on a connection that
// could not be killed. l.mu is held.
func (l *lane) lingers(acquire *call) bool {
	return acquire.cutOff && acquire.gen < l.gen && l.haunted
}

// settle takes the answer to a debt: it is paid when the node has said whether
// the key was there, and is sent again otherwise. l.mu is held.
func (l *lane) settle(d *debt, vote quorum.Vote, cutOff bool, now clock.Instant) {
	if d.unread && !cutOff { // it has been read by now, with all that came before
		d.unread, d.since = false, l.at(now)
	}
	if vote != quorum.Unknown && !d.repeat {
		return
	}
	d.again = l.at(now) + min(50*time.Millisecond<<min(d.tries, 5), time.Second)
	d.tries++
	l.debts = append(l.debts, *d)
}

// collect moves the debts that are due, as far as they fit, into a flight. l.mu
// is held.
func (l *lane) collect(flight []*call, now clock.Instant) []*call {
	l.forget(now)
	at := l.at(now)
	l.debts = slices.DeleteFunc(l.debts, func(d debt) bool {
		if d.again > at || len(flight) == maxFlight || !l.cutter.fits(&d.op) {
			return false
		}
		flight = append(flight, &call{op: &d.op, state: written, debt: &d})
		return true
	})
	return flight
}

// forget drops the debts whose keys have expired by now. A lane that is closing
// does not wait longer than that for a node that is away, even if an acquire may
// still lie unread there: it says so instead. l.mu is held.
func (l *lane) forget(now clock.Instant) {
	at := l.at(now)
	l.debts = slices.DeleteFunc(l.debts, func(d debt) bool {
		ttl := d.op.TTL
		if d.unread && !l.closing || at-d.since <= ttl+l.drift.Over(ttl) {
			return false
		}
		if d.unread {
			l.forgotten++
			l.forgottenTTL = max(l.forgottenTTL, ttl)
		}
		return true
	})
}

// indebted reports whether a debt is due.
func (l *lane) indebted() bool {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	for _, d := range l.debts {
		if d.again <= l.at(now) {
			return true
		}
	}
	return false
}

// nextWake is how long the lane may rest: until a debt is due, or a PING. What is due
// and not sent waits for a flight to land.
func (l *lane) nextWake() time.Duration {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	wake := idlePing
	for _, d := range l.debts {
		if wait := d.again - l.at(now); wait > 0 || !l.aloft() {
			wake = min(wake, max(0, wait))
		}
	}
	return wake
}

// fate is what has become of the connection before this one.
type fate uint8

const (
	killed  fate = iota // and everything unread in it with it
	died                // together with the node's process
	atLarge             // it could not be killed
)

// inherit starts a new connection: what lay unread in the one before has met
// its fate, and all debts are due. l.mu is held.
func (l *lane) inherit(f fate, now clock.Instant) {
	l.gen++
	l.haunted = f == atLarge || l.haunted && f == killed
	for i := range l.debts {
		d := &l.debts[i]
		d.again = 0
		if d.unread {
			d.unread, d.repeat = false, f == atLarge
			d.since = l.at(now)
		}
	}
}
