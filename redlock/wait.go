package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// waiter is what wakes a call that waits for nodes. It is used by one after another,
// since a round needs little memory otherwise.
type waiter struct {
	told  chan struct{} // capacity 1
	timer clock.Timer
}

func newWaiter(c clock.Clock) *waiter {
	w := &waiter{make(chan struct{}, 1), c.NewTimer(time.Hour)}
	w.timer.Stop() // it may turn out that there is nothing to wait for
	return w
}

// wait waits until something comes from one of the channels, for limit at most.
func (w *waiter) wait(told, done, stop <-chan struct{}, limit time.Duration) {
	w.timer.Reset(limit)
	select {
	case <-told:
	case <-w.timer.C():
	case <-done:
	case <-stop:
	}
	w.timer.Stop()
}

// wait waits for r to be decided, for limit at most, and not once one of the channels
// is closed.
func (l *Locker) wait(r *round, done, stop <-chan struct{}, limit time.Duration) {
	w := l.waiters.Get().(*waiter)
	defer l.waiters.Put(w)
	if !r.tell(w.told) {
		return
	}
	w.wait(w.told, done, stop, limit)
	r.tell(nil)
	select {
	case <-w.told: // it was decided at the same moment
	default:
	}
}

// waitFor waits for told to be closed, like wait.
func (l *Locker) waitFor(told, done, stop <-chan struct{}, limit time.Duration) {
	w := l.waiters.Get().(*waiter)
	defer l.waiters.Put(w)
	w.wait(told, done, stop, limit)
}

// patience is how long the answers to what began at start are still waited for.
func (l *Locker) patience(start clock.Instant) time.Duration {
	return l.nodeTimeout - l.clock.Now().Lower(start)
}

// pause waits for d, or returns why not.
func (l *Locker) pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	timer := l.clock.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return ended(ctx)
	}
}
