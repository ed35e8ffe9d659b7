package idempotency

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// State is what a record says of its intent.
type State uint8

const (
	// StateInProgress: an owner is at it, or was and has not said how it ended.
	StateInProgress State = iota + 1

	// StateSuccess: it has been done, and the record holds what came of it.
	StateSuccess

	// StateUnknown: it has been tried, and nobody could tell whether it has been
	// done.
	StateUnknown
)

// String is the state's name: IN_PROGRESS, SUCCESS, UNKNOWN.
func (s State) String() string {
	switch s {
	case StateInProgress:
		return "IN_PROGRESS"
	case StateSuccess:
		return "SUCCESS"
	case StateUnknown:
		return "UNKNOWN"
	}
	return fmt.Sprintf("State(%d)", s)
}

// Outcome is a store's answer to a claim.
type Outcome uint8

const (
	// Created: there was no record. The claim's owner is to run.
	Created Outcome = iota

	// InProgress: another owner's lease has not ended.
	InProgress

	// Replay: it has been done. The record holds the response.
	Replay

	// Mismatch: the record is that of another request under the same key.
	Mismatch

	// Takeover: an earlier owner's lease, or the pause after it, has ended without
	// an answer. The claim's owner has the record now and must find out what
	// became of the attempts before, ahead of running.
	Takeover

	// Undecided: nobody could tell what became of an earlier attempt, and the
	// pause before it is looked into again has not ended.
	Undecided
)

// String is the outcome's name, as in CREATED.
func (o Outcome) String() string {
	names := [...]string{"CREATED", "IN_PROGRESS", "REPLAY", "FINGERPRINT_MISMATCH", "TAKEOVER", "UNKNOWN"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", o)
}

// Record is what a store knows of an intent. Its times are the store's.
type Record struct {
	Key         Key
	Fingerprint fingerprint.Print // of the request that came first; it never changes

	// State is the record's. With [Takeover] it is what the record was in before.
	State State

	// Attempt counts owners, from 1.
	Attempt int64

	// Holder says for people who the last owner is or was.
	Holder string

	// Reason says for people why the state is UNKNOWN.
	Reason string

	// StartedAt is when the first owner claimed it.
	StartedAt time.Time

	// LeaseUntil is when another may take over: the end of the owner's lease, or
	// of the pause after UNKNOWN. It is zero with SUCCESS.
	LeaseUntil time.Time

	// ExpiresAt is when the store forgets the record.
	ExpiresAt time.Time

	// Response is what the guard stored: a [Result] in its own form, sealed if it
	// seals. [Guard.Lookup] reads it.
	Response []byte
}
