package redlock

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// mint agrees with a quorum on the fence of an attempt that a quorum has granted.
//
// Each node has raised its own counter with the lock. The fence is the largest
// that they came to, and a node counts for it only if this attempt itself made
// its counter exactly that while it owned the lock there: with the lock, or by a
// stamp afterwards. That a counter is as high as the fence proves nothing, since
// another attempt may have raised it, and count it for itself.
//
// When a quorum came to the same number at once, that is all. Nodes that are
// below it, or grant later, are stamped all the same, without anybody waiting.
func (l *Locker) mint(ctx context.Context, acquire *round) (fence.Token, quorum.Outcome, []Vote) {
	top, agreed := acquire.highest()
	m := &minting{locker: l, acquire: acquire, fence: top}
	if agreed {
		acquire.each(m.take)
		return top, quorum.Won, nil
	}
	m.votes = newRound(len(l.lanes), m.op(), acquire.start)
	acquire.each(m.take)
	l.wait(m.votes, ctx.Done(), l.closing, l.patience(acquire.start))
	outcome, votes := m.votes.finish(l.lanes)
	return top, outcome, votes
}

// highest is the largest fence among the grants that count, and whether a quorum
// is at it.
func (r *round) highest() (top fence.Token, agreed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := 0
	for i := range r.calls {
		if r.ballot.Vote(i) != quorum.Granted {
			continue
		}
		switch f := r.calls[i].answer.Fence; {
		case f > top:
			top, at = f, 1
		case f == top:
			at++
		}
	}
	return top, at >= quorum.Majority(len(r.calls))
}

var (
	// errAbove: a grant came after the fence was chosen, too high to be part of it.
	errAbove = errors.New("its counter was above the others'")
	// errNoFence: a grant came without one, which only nodes made elsewhere do.
	errNoFence = errors.New("it granted the key without a fence")
	// errGone: a stamp found the key of nobody.
	errGone = errors.New("what it granted is not there any more")
)

// minting takes the answers to an attempt's acquires to the fence it is for.
type minting struct {
	locker  *Locker
	acquire *round
	fence   fence.Token
	votes   *round // nil if it is agreed on already
}

func (m *minting) op() Op {
	acquire := &m.acquire.op
	return Op{
		Kind: OpStamp, Key: acquire.Key, Token: acquire.Token,
		Counter: acquire.Counter, CounterTTL: acquire.CounterTTL, Fence: m.fence,
	}
}

// take sees to it that node i, which has answered the acquire, comes to the fence,
// and that this is voted on if it counts.
func (m *minting) take(i int, acquired Reply) {
	below := acquired.Fence != 0 && acquired.Fence < m.fence
	votes := m.votes != nil
	if !below && !votes {
		return
	}
	now := m.locker.clock.Now()
	counts := acquired.Vote == quorum.Granted
	if below && counts && votes {
		if err := m.locker.lanes[i].submit(&m.votes.calls[i], now); err != nil {
			m.votes.answer(i, &Reply{Vote: quorum.Unsent, Err: err}, now)
		}
		return
	}
	if below { // in quarantine, or late: it is to know, and nobody waits for it
		op := m.op()
		m.locker.lanes[i].submit(&call{op: &op}, now)
	}
	switch {
	case !votes:
	case counts && acquired.Fence > m.fence:
		m.votes.answer(i, &Reply{Vote: quorum.Unknown, Err: errAbove}, now)
	default:
		reply := acquired // kept
		m.votes.answer(i, &reply, now)
	}
}
