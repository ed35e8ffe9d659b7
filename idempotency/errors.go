package idempotency

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInProgress: another call with this key is running. Come back later; the
	// [*InProgressError] around it says when.
	ErrInProgress = errors.New("in progress")

	// ErrMismatch: the key has been used for another request. Nothing will come of
	// retrying; the caller has made a mistake.
	ErrMismatch = errors.New("key used for another request")

	// ErrUnknown: an earlier attempt may or may not have had its effect, and nobody
	// could tell. Come back later, when it will be looked into again; the
	// [*UnknownError] around it says when.
	ErrUnknown = errors.New("outcome of an earlier attempt unknown")

	// ErrNotReplayable: this has been done, and its response cannot be shown
	// again: it was stored as a tombstone, or it cannot be read.
	ErrNotReplayable = errors.New("done, but the response cannot be replayed")

	// ErrLeaseLost: the record is no longer the caller's: another has taken it
	// over, or it has been completed or has gone. It is also the cause with which
	// the context of a run ends, then and when the lease can have ended because
	// the store cannot be reached.
	ErrLeaseLost = errors.New("lease lost")

	// ErrStoreUnavailable: the store has given no answer, so nothing was run.
	ErrStoreUnavailable = errors.New("idempotency store unavailable")

	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")

	// ErrNotUnknown: the record is not, or no longer, in the state and attempt that
	// was to be resolved.
	ErrNotUnknown = errors.New("record is not the unknown one that was looked at")

	// ErrInvalid: a setting, key or argument that cannot be used. The error names
	// it and what would be right; the store was not asked.
	ErrInvalid = errors.New("invalid")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// InProgressError says that another call with the key is running. It wraps
// [ErrInProgress].
type InProgressError struct {
	// RetryAfter is when it makes sense to come back: after as long as the other
	// has taken so far, but at least 1 s and at most until its lease ends.
	RetryAfter time.Duration

	// Age is how long ago the key was first claimed.
	Age time.Duration

	// StartedAt is when that was, by the store's clock.
	StartedAt time.Time

	// Attempt counts owners, from 1.
	Attempt int64
}

// Error implements error.
func (e *InProgressError) Error() string {
	return fmt.Sprintf("%v: attempt %d, for %v; try again in %v",
		ErrInProgress, e.Attempt, e.Age.Round(time.Millisecond), e.RetryAfter.Round(time.Millisecond))
}

// Unwrap returns ErrInProgress.
func (e *InProgressError) Unwrap() error { return ErrInProgress }

// UnknownError says that nobody can tell what became of an earlier attempt. It
// wraps [ErrUnknown].
type UnknownError struct {
	// Reason says for people of the service why; it is not for clients.
	Reason string

	// RetryAfter is when it will be looked into again.
	RetryAfter time.Duration

	// Attempt counts owners, from 1.
	Attempt int64
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: after attempt %d: %s; try again in %v",
		ErrUnknown, e.Attempt, e.Reason, e.RetryAfter.Round(time.Millisecond))
}

// Unwrap returns ErrUnknown.
func (e *UnknownError) Unwrap() error { return ErrUnknown }

// NoEffect says that a run has failed before it had any effect, so that the key
// is freed and a retry runs afresh. Without it every error of a run counts as
// ambiguous. It is only for what is known to have changed nothing anywhere. It
// wraps err, and is nil if err is.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffectError{err}
}

type noEffectError struct{ err error }

func (e *noEffectError) Error() string { return e.err.Error() }
func (e *noEffectError) Unwrap() error { return e.err }

func hadNoEffect(err error) bool {
	var e *noEffectError
	return errors.As(err, &e)
}
