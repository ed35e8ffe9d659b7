package httpguard

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Locker is the lock that SubmitOnce stands on. [Quorum] makes one of a
// [redlock.Locker]; whatever else is put here is shared by all instances of the
// service, as a guard in one process does not see what comes to another. Its methods
// are called concurrently, and return soon after their ctx has ended.
type Locker interface {
	// WithTTL is the same lock with leases of this ttl, or why it cannot be.
	WithTTL(ttl time.Duration) (Locker, error)

	// TryAcquire tries once to hold key, and does not wait for another's lease to
	// end. The error is redlock.ErrHeld, by errors.Is, if another holds it, and
	// only then: it is what refuses a request.
	TryAcquire(ctx context.Context, key string) (Lease, error)

	// Remaining is how long the lease that holds key has left, 0 if none does or
	// nobody knows. It is for telling people when to come back.
	Remaining(ctx context.Context, key string) time.Duration
}

// Lease is what TryAcquire has won, and [redlock.Lease] is one.
type Lease interface {
	// KeepAlive renews the lease until it is released or lost.
	KeepAlive()

	// Release gives the key back, if the lease still has it. It does so although
	// ctx is done.
	Release(ctx context.Context) error
}

// Quorum is the quorum lock, for SubmitOnce. The locker stays the caller's, who
// closes it once the server has been shut down.
func Quorum(locker *redlock.Locker) Locker { return quorumLocker{locker} }

type quorumLocker struct{ locker *redlock.Locker }

func (q quorumLocker) WithTTL(ttl time.Duration) (Locker, error) {
	locker, err := q.locker.WithTTL(ttl)
	if err != nil {
		return nil, err
	}
	return quorumLocker{locker}, nil
}

func (q quorumLocker) TryAcquire(ctx context.Context, key string) (Lease, error) {
	lease, err := q.locker.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (q quorumLocker) Remaining(ctx context.Context, key string) time.Duration {
	seen, err := q.locker.Inspect(ctx, key)
	if err != nil {
		return 0
	}
	return seen.Remaining
}
