package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// heal gives the lease's key back to the nodes that had none in a round of
// extensions that a quorum has granted: they have lost it, or were away when it
// was acquired. Otherwise restarts that no lease notices one by one would add up
// to its loss.
//
// They did not count in that round, and do in later ones like any other, so that a
// lease may come to rest on other nodes than it began with. That a quorum has held
// the key all the while does not make this sound: a node that has forgotten whom it
// granted the key must be out of quarantine before it counts.
func (l *Lease) heal(extended *round, ttl time.Duration) {
	extended.each(func(i int, reply Reply) {
		if reply.Vote == quorum.Denied && reply.Holder == "" {
			l.restore(i, ttl)
		}
	})
}

// restore has node i set the key anew, if the lease is held. From then on that is
// what the release comes after.
func (l *Lease) restore(i int, ttl time.Duration) {
	lane := l.locker.lanes[i]
	op := l.op(OpAcquire, ttl)
	op.Fence = l.fence
	c := &call{op: &op}
	now := l.locker.clock.Now()
	l.mu.Lock()
	queued := l.ended == nil && l.left(now) > notice(l.locker.ttl) && lane.restore(c, l.setter(i), now)
	if queued {
		if l.healed == nil {
			l.healed = make([]*call, len(l.locker.lanes))
		}
		l.healed[i] = c
	}
	l.mu.Unlock()
	if queued && l.fence != 0 {
		// The node's own clock may have kept its counter below the fence.
		op := l.op(OpStamp, 0)
		op.Fence = l.fence
		lane.submit(&call{op: &op}, now)
	}
}

// restore queues c, which sets a key anew that before had set, and reports whether
// it did: not while before may still be carried out, which the release of c alone
// would not undo.
func (l *lane) restore(c, before *call, now clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	settled := before.state == withdrawn || before.state == answered && !l.mayCome(before)
	if !settled || l.refusal(now) != nil {
		return false
	}
	c.state = queued
	l.queue = append(l.queue, c)
	l.rouse()
	return true
}

// setter is the call that has set the key on node i last. l.mu is held.
func (l *Lease) setter(i int) *call {
	if l.healed != nil && l.healed[i] != nil {
		return l.healed[i]
	}
	return &l.acquire.calls[i]
}

// setters are the calls that have set the key on each node last. They stay as
// they are once the lease has ended.
func (l *Lease) setters() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	setters := make([]*call, len(l.locker.lanes))
	for i := range setters {
		setters[i] = l.setter(i)
	}
	return setters
}

// op is an operation on the lease's key.
func (l *Lease) op(kind OpKind, ttl time.Duration) Op {
	acquire := &l.acquire.op
	return Op{
		Kind: kind, Key: acquire.Key, Token: acquire.Token, TTL: ttl,
		Counter: acquire.Counter, CounterTTL: acquire.CounterTTL,
	}
}
