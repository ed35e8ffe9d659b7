package redlock

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// acquire runs one call of TryAcquire, Acquire or Do: try in it, and what they
// have in common around it.
func (l *Locker) acquire(ctx context.Context, key string, try tryFunc) (*Lease, error) {
	if err := l.cfg.checkKey(key); err != nil {
		return nil, err
	}
	begun := l.clock.Now()
	lease, failure := l.admit(ctx, key, try, begun)
	if failure != nil {
		failure.Op, failure.Key, failure.Elapsed = "acquire", key, l.clock.Now().Lower(begun)
		l.trace.refused(failure)
		return nil, failure
	}
	handed := false
	defer func() {
		if !handed { // the hook has panicked, and nobody has the lease
			lease.release(ErrReleased)
		}
	}()
	l.trace.acquired(lease, begun)
	handed = true
	return lease, nil
}

// admit lets a call in, unless there is no use in it.
func (l *Locker) admit(ctx context.Context, key string, try tryFunc, now clock.Instant) (*Lease, *AttemptError) {
	if !l.begin() {
		return nil, failed(ErrClosed)
	}
	defer l.finish()
	if err := l.awaitNodes(ctx); err != nil {
		return nil, failed(err)
	}
	return try(ctx, key, now)
}

// awaitNodes waits until a quorum of nodes has been connected to for the first
// time, or no quorum could be.
func (l *Locker) awaitNodes(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	select {
	case <-l.ready:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-l.closing:
		return ErrClosed
	}
}

func failed(causes ...error) *AttemptError { return &AttemptError{causes: causes} }

// tryFunc tries for a key, once or until it succeeds.
type tryFunc func(ctx context.Context, key string, now clock.Instant) (*Lease, *AttemptError)

// tryOnce is one attempt, out of turn.
func (l *Locker) tryOnce(ctx context.Context, key string, now clock.Instant) (*Lease, *AttemptError) {
	if l.line.held(key, now) {
		failure := failed(ErrHeld)
		failure.Local = true
		return nil, failure
	}
	lease, failure := l.attempt(ctx, key, everyone)
	if failure != nil {
		failure.Attempts = 1
		return nil, failure
	}
	lease.attempts = 1
	l.line.hold(key, lease)
	return l.keep(lease)
}

// tryInTurn stands in line, and then attempts until it succeeds or ctx is done.
func (l *Locker) tryInTurn(ctx context.Context, key string, now clock.Instant) (*Lease, *AttemptError) {
	if err := l.line.enter(ctx, l.closing, key, now); err != nil {
		failure := failed(err)
		if failure.Local = l.line.held(key, l.clock.Now()); failure.Local {
			failure.causes = append(failure.causes, ErrHeld)
		}
		return nil, failure
	}
	var won *Lease
	defer func() { l.line.leave(key, won) }() // also if Backoff panics
	c := newChase(l.prefix(key))
	if l.line.yields(key, l.clock) {
		if err := l.pause(ctx, courtesy); err != nil {
			return nil, failed(err)
		}
		c.expect(len(l.lanes))
	}
	var before []error // why the attempt before failed
	for tries := 1; ; tries++ {
		lease, failure := l.attempt(ctx, key, c.gate)
		if failure == nil {
			lease.attempts = tries
			won = lease
			return l.keep(lease)
		}
		failure.Attempts = tries
		c.learn(failure.Votes)
		if err := l.pause(ctx, l.cfg.Backoff(c.n)); err != nil {
			if failure.cutShort {
				failure.causes = append(failure.causes, before...)
			} else {
				failure.causes = append([]error{err}, failure.causes...)
			}
			return nil, failure
		}
		before = failure.causes
	}
}

// keep hands a lease that was just won to its holder, unless the Locker has
// been closed meanwhile.
func (l *Locker) keep(lease *Lease) (*Lease, *AttemptError) {
	l.keeper.add(lease, lease.won)
	select {
	case <-l.closing: // Close may have missed it
		lease.release(ErrClosed)
		return nil, failed(ErrClosed)
	default:
		return lease, nil
	}
}

// attempt is one round: ask all nodes, unless one of them is the gate and does not
// grant, and see whether a quorum grants while some validity is left. A failed one is
// undone before attempt returns, in the sense that nothing queued later overtakes the
// undoing.
func (l *Locker) attempt(ctx context.Context, key string, gate int) (*Lease, *AttemptError) {
	// A fresh token for every attempt: a late release of one that failed must
	// not delete what the next one wins, nor a late grant be counted for it.
	token, err := newToken()
	if err != nil {
		return nil, failed(err)
	}
	start := l.clock.Now() // before the first request: every key is younger
	op := Op{Kind: OpAcquire, Key: l.prefix(key), Token: token, TTL: l.ttl}
	if l.cfg.Fenced {
		op.Counter, op.CounterTTL = counterOf(op.Key), l.cfg.FenceTTL
		op.Fence = fence.Token(start.Wall().UnixMicro())
	}
	r := newRound(len(l.lanes), op, start)
	outcome, votes := l.poll(ctx, r, gate)
	var minted fence.Token
	if outcome == quorum.Won && l.cfg.Fenced {
		minted, outcome, votes = l.mint(ctx, r)
	}

	now := l.clock.Now() // after the last thing that must succeed
	left := validity(l.ttl, now.Upper(start), l.cfg.Drift)
	if outcome == quorum.Won && left > notice(l.ttl) {
		span := validity(l.ttl, 0, l.cfg.Drift)
		return &Lease{
			locker: l, key: key, token: token, fence: minted, won: now, acquire: r, parent: ctx,
			start: start, span: span, promised: start.Lower(now) + span, ttl: l.ttl,
		}, nil
	}
	failure := failed(l.verdict(ctx, outcome))
	failure.cutShort = outcome == quorum.Short && !errors.Is(failure.causes[0], ErrNoQuorum)
	if failure.Votes = votes; votes == nil {
		failure.Votes = r.snapshot(l.lanes)
	}
	l.explain(failure.Votes, now)
	r.each(nil)
	for i, lane := range l.lanes {
		lane.undo(&r.calls[i], l.ttl)
	}
	return nil, failure
}

// explain says of the nodes that were not waited for which of them are in
// quarantine: that others are too is why the ballot was decided without them.
func (l *Locker) explain(votes []Vote, now clock.Instant) {
	for i, lane := range l.lanes {
		var why *QuarantineError
		if errors.Is(votes[i].Err, errSilent) && errors.As(lane.standing(now), &why) {
			votes[i].Err, votes[i].Quarantined = why, why.For
		}
	}
}

// verdict is why a round for a caller with ctx has failed.
func (l *Locker) verdict(ctx context.Context, outcome quorum.Outcome) error {
	switch {
	case outcome == quorum.Won:
		return ErrTooSlow
	case outcome == quorum.Refused:
		return ErrHeld
	case ctx.Err() != nil:
		return ended(ctx)
	}
	select {
	case <-l.closing:
		return ErrClosed
	default:
		return ErrNoQuorum
	}
}
