package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/redlock"
)

// locker is what is measured. The quorum lock is one; a broken one, in the
// tests, is what the check must find.
type locker interface {
	// TryAcquire tries once, Acquire until ctx ends.
	TryAcquire(ctx context.Context, key string) (lease, error)
	Acquire(ctx context.Context, key string) (lease, error)
	Close(ctx context.Context) error
}

// lease is what a holder has; see redlock.Lease.
type lease interface {
	Context() context.Context
	Remaining() time.Duration
	Fence() fence.Token
	KeepAlive()
	Release(ctx context.Context) error
}

// failure is why a cycle did not succeed.
type failure int

const (
	held failure = iota
	noQuorum
	tooSlow
	lost
	timedOut
	closed
	other
	failures // how many there are
)

// failureNames are the words for failures, in the text and in JSON.
var failureNames = [failures]string{"held", "no_quorum", "too_slow", "lost", "timeout", "closed", "other"}

// classify says which failure an error is. A node's own error is among the
// causes of a failed attempt, so contexts come last: a node that was too slow
// is not a caller who gave up.
func classify(err error) failure {
	for _, c := range []struct {
		cause error
		is    failure
	}{
		{errWaited, timedOut},
		{errLost, lost},
		{redlock.ErrClosed, closed},
		{redlock.ErrLost, lost},
		{redlock.ErrHeld, held},
		{redlock.ErrTooSlow, tooSlow},
		{redlock.ErrNoQuorum, noQuorum},
		{context.DeadlineExceeded, timedOut},
		{context.Canceled, timedOut},
	} {
		if errors.Is(err, c.cause) {
			return c.is
		}
	}
	return other
}

// quorumLocker is the quorum lock as a locker.
type quorumLocker struct{ *redlock.Locker }

// leastSlack is what clocks are allowed to differ by in whatever short time.
const leastSlack = 2 * time.Millisecond

// config is that of a Locker on the cluster whose keys begin with prefix.
func (c *cluster) config(ttl, maxTTL time.Duration, prefix string) redlock.Config {
	return redlock.Config{
		TTL:          ttl,
		MaxTTL:       maxTTL,
		FenceTTL:     max(10*maxTTL, time.Minute), // the least there may be: nobody needs these fences afterwards
		DurableNodes: c.durable,
		Drift:        clock.Drift{Slack: leastSlack + c.lead},
		KeyPrefix:    prefix,
	}
}

// newQuorumLocker is the quorum lock on the cluster.
func newQuorumLocker(c *cluster, cfg redlock.Config) (locker, error) {
	l, err := redlock.Dial(c.urls, cfg)
	if err != nil {
		return nil, err
	}
	return quorumLocker{l}, nil
}

func (q quorumLocker) TryAcquire(ctx context.Context, key string) (lease, error) {
	return orNil(q.Locker.TryAcquire(ctx, key))
}

func (q quorumLocker) Acquire(ctx context.Context, key string) (lease, error) {
	return orNil(q.Locker.Acquire(ctx, key))
}

// orNil keeps a lease that is not there from becoming an interface that is.
func orNil(l *redlock.Lease, err error) (lease, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
