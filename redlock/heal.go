package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// heal gives the lease's key back to the nodes that had none in a round of
// extensions that a quorum has granted: they have lost it, or were away when it
// was acquired. Otherwise restarts that no lease notices one by one would add up
// to its loss.
//
// They did not count in that round, and do in later ones like any other; a node
// that has restarted, once it is out of quarantine.
func (l *Lease) heal(extended *round, ttl time.Duration) {
	extended.each(func(i int, reply Reply) {
		if reply.Vote == quorum.Denied && reply.Holder == "" {
			l.restore(i, ttl)
		}
	})
}

// restore has node i set the key anew, if the lease is held. Extensions on the node
// then rest on that, and that is what the release comes after.
func (l *Lease) restore(i int, ttl time.Duration) {
	lane := l.locker.lanes[i]
	c := &call{op: l.op(OpAcquire, ttl), node: i}
	c.op.Fence = l.fence
	now := l.locker.clock.Now()
	l.mu.Lock()
	queued := l.ended == nil && l.left(now) > notice(l.locker.ttl) && lane.restore(c, &l.acquire.calls[i], now)
	l.mu.Unlock()
	if queued && l.fence != 0 {
		// The node's own clock may have kept its counter below the fence.
		stamp := &call{op: l.op(OpStamp, 0), node: i}
		stamp.op.Fence = l.fence
		lane.submit(stamp, now)
	}
}

// setter is the call that has set last what a lease's acquire c has set first.
// Once the lease has ended it stays the same. The lane's mu is held.
func (c *call) setter() *call {
	if c != nil && c.healed != nil {
		return c.healed
	}
	return c
}

// op is an operation on the lease's key.
func (l *Lease) op(kind OpKind, ttl time.Duration) Op {
	acquire := &l.acquire.calls[0].op
	return Op{
		Kind: kind, Key: acquire.Key, Token: acquire.Token, TTL: ttl,
		Counter: acquire.Counter, CounterTTL: acquire.CounterTTL,
	}
}
