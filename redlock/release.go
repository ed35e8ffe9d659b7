package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/quorum"
)

// Release gives the lock back: it deletes the lease's key on all nodes, where
// it is still the lease's. From the moment it is called the lease is not held.
//
// nil means that the lease was held until this call and a majority of nodes has
// deleted it: whoever tries next will find it free. Otherwise the error is an
// *AttemptError with each node's vote, and it is ErrLost if the lease had been
// lost before or a majority did not hold it any more, ErrNoQuorum if too few
// nodes answered: what they hold goes when they can be reached, or with its TTL.
// A second Release is ErrReleased and sends nothing.
//
// Release takes at most Config.NodeTimeout, also when ctx is done: a caller that
// is cancelled still gives the lock back.
func (l *Lease) Release(ctx context.Context) error {
	if l.none() {
		return errNoLease
	}
	return l.release(ErrReleased)
}

func (l *Lease) release(cause error) error {
	start := l.locker.clock.Now()
	left := l.check(start)
	joined := l.locker.join() // before Close could miss the lease
	if joined {
		defer l.locker.finish()
	}
	l.mu.Lock()
	again := l.released
	l.released = true
	l.mu.Unlock()
	if again {
		return l.failure("release", start, nil, ErrReleased)
	}
	var lost error
	if !l.end(cause) {
		lost = l.reason()
	}
	l.locker.keeper.remove(l)
	if !joined {
		return l.failure("release", start, nil, errors.Join(lost, ErrClosed))
	}

	l.mu.Lock()
	r := newRound(len(l.locker.lanes), l.op(OpRelease, l.ttl), start)
	for i := range r.calls {
		r.calls[i].of = l.setter(i)
	}
	l.mu.Unlock()

	r.send(l.locker.lanes)
	// The next one of this process may go now: the lanes keep the order.
	gap := l.locker.line.leavesGap(l.key)
	if !gap {
		l.locker.line.free(l.key, l, start)
	}
	l.locker.wait(r, nil, nil, l.locker.nodeTimeout)
	if gap {
		l.locker.line.free(l.key, l, l.locker.clock.Now())
	}
	outcome, votes := r.finish(l.locker.lanes)

	var err error
	switch {
	case lost != nil:
		err = l.failure("release", start, r.snapshot(l.locker.lanes), lost)
	case outcome == quorum.Refused:
		err = l.failure("release", start, votes, fmt.Errorf("%w: a majority of nodes no longer held it", ErrLost))
	case outcome != quorum.Won:
		err = l.failure("release", start, votes, ErrNoQuorum)
	}
	l.locker.trace.released(l, start, left, err)
	return err
}
