package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
)

// Lease is a lock that is held for a time. It ends with Release, at the end of
// its validity, or when an extension finds that a majority of nodes no longer
// holds it; its Context ends then.
//
// All methods may be called concurrently, and on a Lease that no Locker has made,
// nil included: that one is not held.
type Lease struct {
	locker   *Locker
	key      string
	token    Token
	fence    fence.Token
	attempts int             // rounds it took
	won      clock.Instant   // when it was acquired
	acquire  *round          // whose calls have set the key
	parent   context.Context // the one it was acquired with: for its values alone
	watched  watched         // belongs to the keeper

	mu       sync.Mutex // guards what follows
	start    clock.Instant
	span     time.Duration // validity, counted from start
	promised time.Duration // the latest end of any validity so far by the lower reading, counted from won
	ttl      time.Duration // the largest that nodes were told
	ended    error         // why it is not held: ErrLost, ErrReleased or ErrClosed
	released bool
	kept     bool // renewed
	renewing bool
	healed   []*call         // per node: what has set the key anew, if anything
	ctx      context.Context // made when first asked for
	cancel   context.CancelCauseFunc
}

// none reports whether l is no Locker's, as what a failed acquire returns.
func (l *Lease) none() bool { return l == nil || l.locker == nil }

// notice is how long before the end of its validity a lease of this ttl ends,
// so that the holder is told in time.
func notice(ttl time.Duration) time.Duration {
	return min(10*time.Millisecond, ttl/50)
}

// Key is the key as it was given to the Locker, without Config.KeyPrefix.
func (l *Lease) Key() string {
	if l == nil {
		return ""
	}
	return l.key
}

// Token is what the nodes store for this lease. Whoever knows it can release
// the lock: keep it out of logs, which print only its digest.
func (l *Lease) Token() Token {
	if l == nil {
		return ""
	}
	return l.token
}

// Fence is what a resource tells this lease from older ones by: of two leases on a
// key, the later has the larger fence, and no two leases have the same. It stays
// the same through extensions. 0 without Config.Fenced. See package
// [github.com/quorumlock/quorumlock/fence] for what to do with it.
func (l *Lease) Fence() fence.Token {
	if l == nil {
		return 0
	}
	return l.fence
}

// String names the lease, without its token.
func (l *Lease) String() string {
	return fmt.Sprintf("lease %s on %q", l.Token().Digest(), l.Key())
}

// GoString is String.
func (l *Lease) GoString() string { return l.String() }

// LogValue is the key and the token's digest.
func (l *Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", l.Key()), slog.String("token", l.Token().Digest()))
}

// Remaining is how long the lease may still be relied on, by the clock of this
// machine, suspended time counted. 0 means it is not held.
func (l *Lease) Remaining() time.Duration {
	if l.none() {
		return 0
	}
	return l.check(l.locker.clock.Now())
}

// Until is when the validity ends, by the wall clock; the zero time if the
// lease is not held. It is for showing: a wall clock that is set later changes
// what it means, [Lease.Remaining] does not.
func (l *Lease) Until() time.Time {
	if l.none() {
		return time.Time{}
	}
	now := l.locker.clock.Now()
	left := l.check(now)
	if left == 0 {
		return time.Time{}
	}
	return now.Wall().Add(left)
}

// Context ends when the lease does, with a cause that is ErrLost, ErrReleased
// or ErrClosed; while the process runs, that is before the validity ends. Its
// Err consults the clock, so it is right even before Done has been closed; the
// Err of contexts derived from it is not and lags by up to min(TTL/20, 100 ms)
// after a suspend. It carries the values of the context the lease was acquired
// with, and not its end.
//
// A process that is paused notices nothing until it runs again: a check before
// a write does not protect the write. Only the resource can, by a fence.
func (l *Lease) Context() context.Context {
	if l.none() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNoLease)
		return ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(l.parent))
		if l.ended != nil {
			cancel(l.ended)
		}
		l.ctx, l.cancel = leaseContext{ctx, l, cancel}, cancel
	}
	return l.ctx
}

// within is a context that ends with the lease and with ctx.
func (l *Lease) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.Context(), func() { cancel(l.reason()) })
	return leaseContext{ctx, l, cancel}, func() {
		stop()
		cancel(nil)
	}
}

// leaseContext is a context whose Err looks at the clock first.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc
}

func (c leaseContext) Err() error {
	c.lease.check(c.lease.locker.clock.Now())
	if why := c.lease.reason(); why != nil {
		c.cancel(why) // whoever was to do so may not have got to it yet
	}
	return c.Context.Err()
}

var errNoLease = fmt.Errorf("%w: there is no lease, its acquire has failed", ErrInvalid)

// heldAt reports whether the lease is held at now.
func (l *Lease) heldAt(now clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended == nil && l.left(now) > 0
}

// left is what is left of the validity. l.mu is held.
func (l *Lease) left(now clock.Instant) time.Duration {
	return l.span - now.Upper(l.start)
}

// check ends the lease if its time has come, and returns what is left.
func (l *Lease) check(now clock.Instant) time.Duration {
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return 0
	}
	left := l.left(now)
	l.mu.Unlock()
	if left > notice(l.locker.ttl) {
		return left
	}
	l.lose(now, errors.New("its validity ended"))
	return 0
}

// lose ends a lease that was not released. Whoever is told so stays told: no
// later answer revives it.
func (l *Lease) lose(now clock.Instant, why error) {
	cause := fmt.Errorf("%w: %w", ErrLost, why)
	if !l.end(cause) {
		return
	}
	setters := l.setters()
	for i, lane := range l.locker.lanes {
		lane.disown(setters[i])
	}
	l.locker.keeper.bury(l, now)
	l.locker.line.free(l.key, l, now)
	l.locker.trace.lost(l, now.Lower(l.won), cause)
}

// undo releases what a lost lease has left, in case nobody ever releases it.
func (l *Lease) undo() {
	l.mu.Lock()
	ttl := l.ttl
	l.mu.Unlock()
	setters := l.setters()
	for i, lane := range l.locker.lanes {
		lane.undo(setters[i], ttl)
	}
}

// end ends the lease, once: it reports whether this call did.
func (l *Lease) end(cause error) bool {
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return false
	}
	l.ended = cause
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
	return true
}

// reason is why the lease has ended.
func (l *Lease) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *Lease) failure(op string, start clock.Instant, votes []Vote, cause error) error {
	return &AttemptError{
		Op: op, Key: l.key, Attempts: min(1, len(votes)), Votes: votes,
		Elapsed: l.locker.clock.Now().Lower(start), causes: []error{cause},
	}
}
