package idempotency

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// Store keeps records. Each call is one atomic step on one record, by the store's
// own clock: no time of the caller's is in it. Its methods may be called
// concurrently.
//
// Every call may be sent again with the same arguments, when its answer was lost:
// what it did the first time stands, and the answer is the same. A call whose
// context has ended before it was sent changes nothing; one that fails later has
// been carried out or not.
//
// A record whose ExpiresAt has come is as good as none. Package storetest holds
// all of this as tests.
type Store interface {
	// Claim asks for the record, as the first or as the next owner; see [Outcome]
	// for the answers. The fingerprint is compared before anything else, and if it
	// is neither the record's nor the record's is among the alternates, the answer
	// is Mismatch whatever the state. Of any number of claims at once, one gets
	// Created or Takeover.
	//
	// A record that is taken over keeps its fingerprint and its start, and lives on
	// for at least the claim's retention. An owner that claims again gets its
	// first answer again, and a lease anew.
	Claim(ctx context.Context, r ClaimRequest) (Claim, error)

	// Renew makes the lease end r.Lease from now and the record live for at least
	// r.Retention from now. ErrLeaseLost: it is not in progress under that owner.
	Renew(ctx context.Context, r RenewRequest) error

	// Complete makes it SUCCESS with the response. It lives for at least r.Retention
	// from now, and no call makes its life shorter than an earlier one has. It takes
	// the owner's token but not a live lease: if nobody has taken over, who is late
	// still completes. ErrLeaseLost: it is another's, and unchanged. A
	// record that has gone is put back, since what it stood for has been done.
	Complete(ctx context.Context, r CompleteRequest) (Completion, error)

	// MarkUnknown makes it UNKNOWN and lets go of it: after r.Pause a claim takes
	// it over. It lives for at least r.Retention from now. ErrLeaseLost: it is not
	// in progress under that owner.
	MarkUnknown(ctx context.Context, r UnknownRequest) error

	// Abandon lets go of it for an owner who has done nothing. One that was
	// created, or whose earlier attempts are known to have done nothing
	// (r.Reconciled), is removed. One that was taken over otherwise becomes
	// UNKNOWN without a pause: what the earlier attempts did is still open.
	// ErrLeaseLost: it is another's. None at all is no error.
	Abandon(ctx context.Context, r AbandonRequest) error

	// Get returns the record, or ErrNotFound.
	Get(ctx context.Context, k Key) (Record, error)
}

// Lister is a Store that can show its records. It is for operators and for
// [Guard.Sweep], and may read the whole store.
type Lister interface {
	// List yields records that match f, in no particular order. Records that are
	// written meanwhile may be missed or seen twice. An error ends it.
	List(ctx context.Context, f Filter) iter.Seq2[Record, error]
}

// Filter chooses records.
type Filter struct {
	// State is the one that records are in; zero means any.
	State State

	// Due has only records that a claim would take over: not SUCCESS, and their
	// lease or pause has ended.
	Due bool
}

// Resolver is a Store in which an operator's decision can be entered.
type Resolver interface {
	// Resolve ends a record's being UNKNOWN: it becomes SUCCESS with the response,
	// or is removed. Whoever was its owner has lost it. ErrNotUnknown: it is not
	// UNKNOWN with that attempt, and unchanged.
	Resolve(ctx context.Context, r Resolution) error
}

// ClaimRequest asks for a record.
type ClaimRequest struct {
	Key         Key
	Fingerprint fingerprint.Print

	// Alternates are further fingerprints of the same request, under versions
	// that records may still have.
	Alternates []fingerprint.Print

	Owner     Token
	Lease     time.Duration // how long the owner has it without renewing
	Retention time.Duration // how long the record is kept at least, counted from now
	Holder    string        // for people
}

// Validate returns an error that wraps [ErrInvalid] if something is missing: no
// store takes a claim without a lease for a free one. Stores call it first.
func (r ClaimRequest) Validate() error {
	if err := r.Key.Validate(); err != nil {
		return err
	}
	switch {
	case r.Fingerprint == "":
		return invalid("ClaimRequest.Fingerprint is empty")
	case r.Owner == "":
		return invalid("ClaimRequest.Owner is empty")
	case r.Lease < time.Millisecond:
		return invalid("ClaimRequest.Lease is %v: want at least 1ms", r.Lease)
	case r.Retention < r.Lease:
		return invalid("ClaimRequest.Retention is %v: want at least the lease, %v", r.Retention, r.Lease)
	}
	return areText(r.Fingerprint, r.Alternates)
}

// areText returns an error if one of a request's fingerprints is not what every
// store can keep. One that a store refused would pass for a store that is away.
func areText(current fingerprint.Print, alternates []fingerprint.Print) error {
	if err := isText(current); err != nil {
		return err
	}
	for _, p := range alternates {
		if err := isText(p); err != nil {
			return err
		}
	}
	return nil
}

func isText(p fingerprint.Print) error {
	if !utf8.ValidString(string(p)) || strings.Contains(string(p), "\x00") {
		return invalid("the fingerprint %q is no text: want UTF-8 without NUL, such as hexadecimal digits", string(p))
	}
	return nil
}

// Claim is the answer to a ClaimRequest.
type Claim struct {
	Outcome Outcome

	// Record is as it is now, except for its State with Takeover. With Mismatch it
	// may be empty.
	Record Record

	// Age is how long ago the record was first claimed.
	Age time.Duration

	// Left is how long until the owner's lease ends, or the pause after UNKNOWN:
	// with Created and Takeover the claim's own lease.
	Left time.Duration
}

// RenewRequest prolongs a lease.
type RenewRequest struct {
	Key              Key
	Owner            Token
	Lease, Retention time.Duration
}

// CompleteRequest stores what came of it. Fingerprint, Attempt and StartedAt are
// those of the claim, for a record that has gone.
type CompleteRequest struct {
	Key         Key
	Owner       Token
	Response    []byte
	Retention   time.Duration
	Fingerprint fingerprint.Print
	Attempt     int64
	StartedAt   time.Time // zero: now
}

// Completion says what Complete did.
type Completion uint8

const (
	Stored        Completion = iota + 1 // the response is in the record
	Restored                            // the record had gone and was put back
	AlreadyStored                       // this owner had completed it before; what was stored then stays
)

// UnknownRequest gives up a record that may or may not have had its effect.
type UnknownRequest struct {
	Key              Key
	Owner            Token
	Reason           string
	Pause, Retention time.Duration
}

// AbandonRequest gives up a record under which its owner has done nothing.
type AbandonRequest struct {
	Key        Key
	Owner      Token
	Reconciled bool // the attempts before are known to have done nothing either
}

// Resolution is an operator's decision about an UNKNOWN record.
type Resolution struct {
	Key       Key
	Attempt   int64 // the record's, as the operator saw it
	Happened  bool
	Response  []byte        // if it happened
	Retention time.Duration // if it happened: how long the record is kept at least, from now
}
