package redlock

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/quorumlock/quorumlock/quorum"
)

// everyone is the gate of an attempt that asks all nodes at once.
const everyone = -1

var errNotAsked = errors.New("not asked, since the node that was asked first did not grant")

// chase is what a call of Acquire has learnt of those it is behind.
//
// Who waits in another process for a lock that passes from hand to hand has to ask
// often to find it free, and asks in vain nearly always. So it asks one node first,
// the same as its rivals do, and the others only if that one grants: most attempts
// then cost one command, and of two rivals that find the lock free at once one is
// stopped at the gate, where otherwise they might split the votes.
type chase struct {
	key    string // the name that nodes know
	gate   int    // the node to ask before the others, or everyone
	seen   int    // the node that has told the holder
	holder string // the digest of the token there
	passed int    // how often the lock was seen with yet another holder
	n      int    // what Config.Backoff is to be asked for
}

// Bounds of n while the lock is passed on: with the default back-off, pauses of up to
// 64 ms for who has just come, and up to 8 ms for who has been passed over for long.
const (
	calm  = 5
	eager = 2
)

// newChase prepares for attempts on key.
func newChase(key string) chase { return chase{key: key, gate: everyone, n: -1} }

// expect prepares for rivals.
func (c *chase) expect(nodes int) { c.gate, c.n = c.first(nodes), calm-2 }

// first is the number of the node to begin with.
func (c *chase) first(nodes int) int {
	h := fnv.New32a()
	h.Write([]byte(c.key))
	return int(h.Sum32() % uint32(nodes))
}

// learn takes what the nodes said to an attempt that has failed.
//
// n grows with each failure. While the lock is passed on, it has a bound, which is
// the lower the more often the caller has been passed over, that all get their turn.
func (c *chase) learn(votes []Vote) {
	c.n++
	c.gate = everyone
	first := c.first(len(votes))
	for i := range votes {
		node := (first + i) % len(votes)
		holder := votes[node].Holder
		if holder == "" {
			continue
		}
		if c.holder != "" && c.seen == node && c.holder != holder {
			c.passed++
			c.n = min(c.n, max(eager, calm-c.passed))
			if c.passed%8 != 0 && quorate(votes) { // a gate knows nothing of a quorum
				c.gate = node
			}
		}
		c.seen, c.holder = node, holder
		return
	}
}

// quorate reports whether enough nodes voted to grant a lock, as far as they were asked.
// If not, the lack of them is why the attempt failed, and a gate would not see it.
func quorate(votes []Vote) bool {
	voting := 0
	for _, v := range votes {
		if v.Vote == quorum.Granted || v.Vote == quorum.Denied || v.Err == errNotAsked {
			voting++
		}
	}
	return voting >= quorum.Majority(len(votes))
}

// poll asks all nodes, unless one of them is the gate and does not grant.
func (l *Locker) poll(ctx context.Context, r *round, gate int) (quorum.Outcome, []Vote) {
	refused, patience := false, l.nodeTimeout
	if gate == everyone {
		r.send(l.lanes)
	} else {
		refused = l.askGate(ctx, r, gate) == quorum.Denied
		patience = l.patience(r.start)
	}
	l.wait(r, ctx.Done(), l.closing, patience)
	outcome, votes := r.finish(l.lanes)
	if refused {
		outcome = quorum.Refused
	}
	return outcome, votes
}

// askGate asks the gate, and the other nodes if it grants. It returns the gate's vote.
func (l *Locker) askGate(ctx context.Context, r *round, gate int) quorum.Vote {
	answered := make(chan struct{})
	r.each(func(int, Reply) { close(answered) })
	r.sendOne(l.lanes, gate)
	l.waitFor(answered, ctx.Done(), l.closing, l.nodeTimeout)
	r.each(nil)
	vote := r.vote(gate)
	for i := range l.lanes {
		switch {
		case i == gate:
		case vote == quorum.Granted:
			r.sendOne(l.lanes, i)
		default:
			r.answer(i, &Reply{Vote: quorum.Unsent, Err: errNotAsked}, r.start)
		}
	}
	return vote
}
