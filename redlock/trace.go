package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// Trace has hooks that a Locker calls as things happen, for logs and metrics.
// A nil hook is not called. Hooks are called from the goroutine concerned, may
// run concurrently, must return quickly, since the lock waits for them, and must
// not call the Locker or its leases. None of them is given a token, only its
// digest.
type Trace struct {
	// Acquired is called once per TryAcquire, Acquire and Do, when the lease
	// has been won or given up.
	Acquired func(AcquireEvent)
	// Extended is called once per Extend and per attempt to renew.
	Extended func(ExtendEvent)
	// Lost is called when a lease ends other than by Release.
	Lost func(LostEvent)
	// Released is called once per first Release.
	Released func(ReleaseEvent)
	// Node is called when a connection to a node has been made or has ended, and
	// when a node that answers has turned out to be no voter.
	Node func(NodeEvent)
}

// AcquireEvent is the end of an acquisition.
type AcquireEvent struct {
	Key      string
	Token    string        // digest; "" without a lease
	Attempts int           // rounds tried
	Elapsed  time.Duration // from the call to its end, waiting included
	Validity time.Duration // what was left when the lease was won
	Err      error         // nil if it was won
}

// ExtendEvent is the end of an extension.
type ExtendEvent struct {
	Key       string
	Token     string
	Renewal   bool          // by KeepAlive or Do, not by a call of Extend
	Remaining time.Duration // afterwards
	Err       error
}

// LostEvent is the loss of a lease.
type LostEvent struct {
	Key   string
	Token string
	Held  time.Duration // since it was acquired
	Err   error         // why
}

// ReleaseEvent is the end of a release.
type ReleaseEvent struct {
	Key       string
	Token     string
	Held      time.Duration // since it was acquired
	Remaining time.Duration // what was left of the validity when Release was called
	Elapsed   time.Duration // how long the release took
	Err       error
}

// NodeEvent is a connection that begins or ends, or a node that may not vote.
type NodeEvent struct {
	Node string
	Up   bool
	Err  error // why it ended or could not be made, or why the node is no voter
}

func (t *Trace) refused(why *AttemptError) {
	if t.Acquired != nil {
		t.Acquired(AcquireEvent{Key: why.Key, Attempts: why.Attempts, Elapsed: why.Elapsed, Err: why})
	}
}

func (t *Trace) acquired(l *Lease, begun clock.Instant) {
	if t.Acquired != nil {
		t.Acquired(AcquireEvent{
			Key: l.key, Token: l.token.Digest(), Attempts: l.attempts,
			Elapsed: l.locker.clock.Now().Lower(begun), Validity: l.Remaining(),
		})
	}
}

func (t *Trace) extended(l *Lease, renewal bool, remaining time.Duration, err error) {
	if t.Extended != nil {
		t.Extended(ExtendEvent{Key: l.key, Token: l.token.Digest(), Renewal: renewal, Remaining: remaining, Err: err})
	}
}

func (t *Trace) lost(l *Lease, held time.Duration, err error) {
	if t.Lost != nil {
		t.Lost(LostEvent{Key: l.key, Token: l.token.Digest(), Held: held, Err: err})
	}
}

func (t *Trace) released(l *Lease, begun clock.Instant, remaining time.Duration, err error) {
	if t.Released != nil {
		t.Released(ReleaseEvent{
			Key: l.key, Token: l.token.Digest(), Held: begun.Lower(l.won), Remaining: remaining,
			Elapsed: l.locker.clock.Now().Lower(begun), Err: err,
		})
	}
}

func (t *Trace) nodeChanged(e NodeEvent) {
	if t.Node != nil {
		t.Node(e)
	}
}
