package idempotency

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// Guard runs intents once and replays what came of them. Its methods may be
// called concurrently. It has no goroutines of its own outside of them and needs
// no closing.
type Guard struct {
	store  Store
	config Config
}

// New returns a Guard that keeps its records in s. An error wraps [ErrInvalid]
// and names what is wrong in c.
func New(s Store, c Config) (*Guard, error) {
	if s == nil {
		return nil, invalid("the store is nil")
	}
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Guard{s, c}, nil
}

// Request is what is asked for.
type Request struct {
	Key Key

	// Fingerprint tells this request from others under the same key; see package
	// fingerprint.
	Fingerprint fingerprint.Print

	// Alternates are fingerprints of this request under versions that records may
	// still have.
	Alternates []fingerprint.Print

	// RunDegraded runs even if the store gives no answer to the claim. It is for
	// work whose every effect is guarded elsewhere too, such as by a unique key in
	// the database: nothing else keeps it from being done twice then.
	RunDegraded bool
}

func (r Request) validate() error {
	if r.Fingerprint == "" {
		return errors.Join(r.Key.Validate(), invalid("Request.Fingerprint is empty"))
	}
	return errors.Join(r.Key.Validate(), areText(r.Fingerprint, r.Alternates))
}

// Func is what is to be run once. It may outlive the call's context, which does
// not end its own: that ends when the lease is lost (its cause wraps
// [ErrLeaseLost]) and after Config.ExecTimeout ([context.DeadlineExceeded]). It
// returns soon after; until it does, Do does not.
//
// What it returns decides what becomes of the key:
//
//   - a nil error: the result is stored and replayed from then on. A refusal for
//     good is such a result.
//   - an error made by [NoEffect]: the key is freed, a retry runs.
//   - any other error, and a panic: it may have had its effect. The key is not
//     freed; the next attempt asks the [Reconciler] first.
type Func func(ctx context.Context, ex *Execution) (Result, error)

// Info says how Do came by what it returned.
type Info struct {
	// Outcome is what the claim found; it means nothing if Degraded.
	Outcome Outcome

	// Attempt counts owners of the record, from 1; 0 if Degraded.
	Attempt int64

	// Ran says that fn was run by this call.
	Ran bool

	// Replayed says that the result is that of an earlier run.
	Replayed bool

	// Degraded says that fn was run although the store gave no answer to the claim.
	Degraded bool

	// Stored says that the store has what a retry needs: the result, that the
	// outcome is unknown, or that the key is free.
	Stored bool

	// StoreErr is why it has not. A retry then finds the key in progress until the
	// lease ends, and the Reconciler is asked.
	StoreErr error
}

// Do runs fn if the key has not been used, and otherwise returns the result of
// the run before. Of any number of calls with one key at a time, in any number of
// processes, one runs.
//
// By the time Do returns, what came of it has been stored, or the tries to do so
// have been used up; Info says which. What fn returned is returned either way.
//
// It does not wait for others. Errors, besides those that fn returns:
//
//   - [ErrInProgress], an [*InProgressError]: another call is running.
//   - [ErrMismatch]: the key has been used for another request. This is found out
//     before anything else.
//   - [ErrUnknown], an [*UnknownError]: an earlier run may have had its effect.
//   - [ErrNotReplayable]: it has been done; the result holds what can be shown.
//   - [ErrStoreUnavailable]: the store gave no answer, and nothing was run.
//   - [ErrInvalid]: the request cannot be used.
//   - the context's, if it ended before the store had answered. Nothing was run.
//     Once fn is running, the end of ctx changes nothing.
//
// If fn panics, the record becomes UNKNOWN and the panic goes on.
func (g *Guard) Do(ctx context.Context, r Request, fn Func) (Result, Info, error) {
	if err := r.validate(); err != nil {
		return Result{}, Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, Info{}, context.Cause(ctx)
	}
	ex := &Execution{Key: r.Key, guard: g, owner: NewToken(), fingerprint: r.Fingerprint}
	claimed := g.config.Clock.Now()
	told := false
	defer func() {
		if !told { // a hook has panicked, and nobody runs
			g.unclaim(ctx, ex)
		}
	}()
	claim, err := g.claim(ctx, r, ex.owner)
	told = true
	if err != nil {
		if r.RunDegraded && errors.Is(err, ErrStoreUnavailable) {
			ex.Degraded = true
			return g.run(ctx, ex, claimed, fn)
		}
		g.unclaim(ctx, ex)
		return Result{}, Info{StoreErr: err}, err
	}
	info := Info{Outcome: claim.Outcome, Attempt: claim.Record.Attempt, Stored: true}
	switch claim.Outcome {
	case Created, Takeover:
		ex.Attempt, ex.startedAt = claim.Record.Attempt, claim.Record.StartedAt
		if claim.Outcome == Created {
			return g.run(ctx, ex, claimed, fn)
		}
		ex.Takeover = true
		return g.takeOver(ctx, ex, claimed, claim.Record, fn)
	case Replay:
		result, err := g.config.Seal.load(r.Key, claim.Record.Response)
		if err == nil && result.Tombstone {
			err = ErrNotReplayable
		}
		info.Replayed = err == nil
		return result, info, err
	case Mismatch:
		return Result{}, info, ErrMismatch
	case Undecided:
		return Result{}, info, &UnknownError{claim.Record.Reason, claim.Left, claim.Record.Attempt}
	}
	return Result{}, info, inProgress(claim)
}

// inProgress is the error for a claim that met another's lease.
func inProgress(c Claim) *InProgressError {
	return &InProgressError{
		RetryAfter: max(min(c.Age, c.Left), minRetryAfter),
		Age:        c.Age, StartedAt: c.Record.StartedAt, Attempt: c.Record.Attempt,
	}
}

func (g *Guard) claim(ctx context.Context, r Request, owner Token) (claim Claim, err error) {
	err = g.step(ctx, r.Key.Operation, "claim", g.thrice(), func(ctx context.Context) error {
		claim, err = g.store.Claim(ctx, ClaimRequest{
			Key: r.Key, Fingerprint: r.Fingerprint, Alternates: r.Alternates, Owner: owner,
			Lease: g.config.Lease, Retention: g.config.Retention, Holder: g.config.Holder,
		})
		return err
	})
	g.config.Trace.claimed(r.Key, claim, err)
	return claim, err
}

// unclaim gives up a claim that got no answer. It may have been carried out, and
// would keep the key in progress for a lease although nothing runs.
func (g *Guard) unclaim(ctx context.Context, ex *Execution) {
	once := patience{1, g.config.StoreTimeout / 4}
	g.abandon(context.WithoutCancel(ctx), ex, once)
}
