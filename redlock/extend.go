package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// Extend makes the lease last for ttl from now, if that is later than its end
// now; it never shortens it. It asks all nodes and needs a majority that still
// holds the lease and is not in quarantine. If there is one, nodes that have no such
// key are given it back afterwards.
//
// With nil, the validity counts from this call. With ErrNoQuorum, ErrTooSlow or
// ctx's error the lease is as it was, and may be extended again. ErrLost means
// that it has ended, ErrReleased that it had been released, ErrInvalid that ttl
// is not a whole millisecond or more, or above Config.MaxTTL.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if l.none() {
		return errNoLease
	}
	if err := l.locker.cfg.checkTTL("ttl", ttl); err != nil {
		return err
	}
	if !l.locker.join() {
		return l.failure("extend", l.locker.clock.Now(), nil, ErrClosed)
	}
	defer l.locker.finish()
	return l.extend(ctx, ttl, false)
}

func (l *Lease) extend(ctx context.Context, ttl time.Duration, renewal bool) error {
	start := l.locker.clock.Now()
	patience := l.locker.nodeTimeout
	if renewal {
		patience = max(patience, ttl/10)
	}
	left, err := l.tryExtend(ctx, start, ttl, patience)
	l.locker.trace.extended(l, renewal, left, err)
	return err
}

func (l *Lease) tryExtend(ctx context.Context, start clock.Instant, ttl, patience time.Duration) (time.Duration, error) {
	if left := l.check(start); left == 0 {
		return 0, l.failure("extend", start, nil, l.reason())
	}
	if ctx.Err() != nil {
		return l.Remaining(), l.failure("extend", start, nil, ended(ctx))
	}
	l.mu.Lock()
	l.ttl = max(l.ttl, ttl)
	r := newRound(len(l.locker.lanes), l.op(OpExtend, ttl), start)
	for i := range r.calls {
		r.calls[i].of = l.setter(i)
	}
	l.mu.Unlock()

	held := l.Context() // nothing is extended once the lease has ended
	r.send(l.locker.lanes)
	l.locker.wait(r, ctx.Done(), held.Done(), patience)
	outcome, votes := r.finish(l.locker.lanes)

	now := l.locker.clock.Now()
	switch outcome {
	case quorum.Won:
		if validity(ttl, now.Upper(start), l.locker.cfg.Drift) <= 0 {
			return l.check(now), l.failure("extend", start, r.snapshot(l.locker.lanes), ErrTooSlow)
		}
		if l.lengthen(start, ttl, now) {
			l.heal(r, ttl)
			return l.check(now), nil
		}
		return 0, l.failure("extend", start, r.snapshot(l.locker.lanes), l.reason())
	case quorum.Refused:
		l.lose(now, errors.New("a majority of nodes no longer holds it"))
		return 0, l.failure("extend", start, votes, l.reason())
	}
	left := l.check(now)
	if left == 0 {
		return 0, l.failure("extend", start, votes, l.reason())
	}
	return left, l.failure("extend", start, votes, l.locker.verdict(ctx, outcome))
}

// lengthen moves the end of the validity to ttl from start, less the drift,
// if that is later, and reports false if the lease has ended.
func (l *Lease) lengthen(start clock.Instant, ttl time.Duration, now clock.Instant) bool {
	span := validity(ttl, 0, l.locker.cfg.Drift)
	l.mu.Lock()
	held := l.ended == nil && l.left(now) > notice(l.locker.ttl)
	if held && span-now.Upper(start) > l.left(now) {
		l.start, l.span = start, span
		l.promised = max(l.promised, start.Lower(l.won)+span)
	}
	l.mu.Unlock()
	if !held {
		l.check(now)
		return false
	}
	l.locker.keeper.update(l, now)
	return true
}
