package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

var (
	// ErrHeld: another holds the lock. Even if every node that did not answer
	// had said yes there would have been no quorum; or the lock was passing from
	// holder to holder, and the one node that Acquire asked last had yet another.
	// Wait, or try later.
	ErrHeld = errors.New("held by another")

	// ErrNoQuorum: too few nodes have voted. Whether the lock is free is not
	// known; nodes are down, out of reach, in quarantine after a restart, or no
	// voters, or have lost what they had just granted, and each Vote says which.
	// Alarm somebody.
	ErrNoQuorum = errors.New("no quorum")

	// ErrTooSlow: a quorum granted, but by then the validity was used up.
	ErrTooSlow = errors.New("too slow: a quorum granted, but no validity was left")

	// ErrLost: the lease was ours and is not any more. Stop.
	ErrLost = errors.New("lease lost")

	// ErrReleased: the lease has been released by its holder.
	ErrReleased = errors.New("lease released")

	// ErrClosed: the Locker is closed.
	ErrClosed = errors.New("locker closed")

	// ErrInvalid: a setting, key or duration that cannot be used. The error
	// names it and what would be right; nothing was sent.
	ErrInvalid = errors.New("invalid")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// Vote is what one node said to an operation.
type Vote struct {
	Node string
	Vote quorum.Vote
	// RTT is how long the answer took, queueing included; 0 without answer.
	RTT time.Duration
	// Holder is the digest of the token that the key held instead, if known.
	Holder string
	// Quarantined is how much longer nothing that the node grants counts; 0 if it
	// does. Vote is then Unknown, and Err a *QuarantineError.
	Quarantined time.Duration
	// Err is why there is no definite answer. With quorum.Denied it says that the
	// key holds something that is no lock: nobody gets it before that is gone.
	Err error
}

// String describes the vote, without secrets.
func (v Vote) String() string {
	switch {
	case v.Err != nil:
		return fmt.Sprintf("%s %s: %v", v.Node, v.Vote, v.Err)
	case v.Holder != "":
		return fmt.Sprintf("%s %s: held by %s", v.Node, v.Vote, v.Holder)
	}
	return fmt.Sprintf("%s %s", v.Node, v.Vote)
}

// AttemptError says why an operation on a key did not succeed. It wraps its
// causes: one of the sentinels of this package, and the context's error where
// that ended a wait.
type AttemptError struct {
	Op       string // acquire, extend, release or inspect
	Key      string
	Attempts int           // how many rounds were tried, 0 if the nodes were never asked
	Elapsed  time.Duration // from the call to its end
	Local    bool          // a valid lease of this process holds the key; no node was asked
	Votes    []Vote        // of the last round, one per node
	causes   []error
	cutShort bool // by the end of its context, or of the Locker
}

// Error names the key, the cause and each node that did not grant.
func (e *AttemptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", e.Op, e.Key)
	for i, c := range e.causes {
		if i > 0 {
			b.WriteString(": ")
		}
		b.WriteString(c.Error())
	}
	if e.Local {
		b.WriteString(" in this process")
	}
	granted, others := inWords(e.Votes)
	if n := len(e.Votes); n > 0 {
		fmt.Fprintf(&b, " (%d of %d granted, %d needed", granted, n, quorum.Majority(n))
		for _, o := range others {
			b.WriteString("; " + o)
		}
		b.WriteString(")")
	}
	return b.String()
}

// inWords is how many votes were granted, and what the others were. Nodes in
// quarantine are so for one reason, mostly: several are named together, with the
// one that is so longest.
func inWords(votes []Vote) (granted int, others []string) {
	var names []string
	var longest *QuarantineError
	for _, v := range votes {
		var why *QuarantineError
		switch {
		case v.Vote == quorum.Granted:
			granted++
		case errors.As(v.Err, &why):
			names = append(names, v.Node)
			if longest == nil || why.For > longest.For {
				longest = why
			}
		default:
			others = append(others, v.String())
		}
	}
	if longest == nil {
		return granted, others
	}
	who := strings.Join(names, ", ")
	switch len(names) {
	case 1:
		who += " unknown:"
	case len(votes):
		who = fmt.Sprintf("%d nodes", len(names))
	}
	return granted, slices.Insert(others, 0, fmt.Sprintf("%s %v", who, longest))
}

// Unwrap returns the causes, for errors.Is and errors.As. The votes' errors are
// not among them: that a node timed out is not the end of the caller's context.
func (e *AttemptError) Unwrap() []error { return e.causes }

// ended is why ctx is done: its error, and its cause if that is another. A cause
// that is this package's own belongs to the lease whose context it was, and says
// nothing of the operation that was called with it.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case errors.Is(cause, err):
		return cause
	case errors.Is(cause, ErrLost), errors.Is(cause, ErrReleased), errors.Is(cause, ErrClosed):
		return fmt.Errorf("%w: %v", err, cause)
	}
	return fmt.Errorf("%w: %w", err, cause)
}
