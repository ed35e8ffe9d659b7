// Package storetest tests that a store keeps the contract of
// [idempotency.Store], and of [idempotency.Lister] and [idempotency.Resolver] if it
// is one. It is for whoever writes a store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Subject{Store: …, Elapse: …, Forget: …})
//	}
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

// Subject is a store to be tested. It may hold other records: the tests use keys
// of their own.
type Subject struct {
	Store idempotency.Store

	// Elapse makes d go by for one record, as it would by itself on the store's
	// clock. Moving all of the record's times back by d does; so does waiting. The
	// durations are minutes, so that what really goes by meanwhile does not matter.
	Elapse func(ctx context.Context, k idempotency.Key, d time.Duration) error

	// Forget makes the store lose a record, as an eviction or a fail-over does.
	Forget func(ctx context.Context, k idempotency.Key) error
}

func (s Subject) validate() error {
	switch {
	case s.Store == nil:
		return errors.New("Subject.Store is nil: want the store to be tested")
	case s.Elapse == nil:
		return errors.New("Subject.Elapse is nil: want a function that makes time go by for a record")
	case s.Forget == nil:
		return errors.New("Subject.Forget is nil: want a function that makes the store lose a record")
	}
	return nil
}

// Run tests s, in subtests one after another. Those of Lister and Resolver pass if
// the store is none. Without a Store, Elapse or Forget the test fails at once.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*trial){
		"FourAnswers":                             fourAnswers,
		"OneOfManyClaimsIsFirst":                  oneOfManyClaimsIsFirst,
		"OneOfManyClaimsTakesOver":                oneOfManyClaimsTakesOver,
		"OwnersTakeTurns":                         ownersTakeTurns,
		"FingerprintComesFirst":                   fingerprintComesFirst,
		"AlternatesMatch":                         alternatesMatch,
		"MismatchLeavesALapsedRecord":             mismatchLeavesALapsedRecord,
		"ClaimsThatLackSomethingAreRefused":       claimsThatLackSomethingAreRefused,
		"ARenewedLeaseLasts":                      aRenewedLeaseLasts,
		"ALateOwnerOverwritesNothing":             aLateOwnerOverwritesNothing,
		"ALateOwnerCompletesIfNobodyTookOver":     aLateOwnerCompletesIfNobodyTookOver,
		"CallsMayBeSentTwice":                     callsMayBeSentTwice,
		"WhatWasLostIsPutBack":                    whatWasLostIsPutBack,
		"ALostRecordIsNotPutBackOverAnother":      aLostRecordIsNotPutBackOverAnother,
		"UnknownPausesAndIsTakenOverOnce":         unknownPausesAndIsTakenOverOnce,
		"AbandonedIsFree":                         abandonedIsFree,
		"AbandoningATakeoverLeavesTheQuestion":    abandoningATakeoverLeavesTheQuestion,
		"LifeIsNeverShortened":                    lifeIsNeverShortened,
		"RetentionCountsFromCompletion":           retentionCountsFromCompletion,
		"ForeverIsLong":                           foreverIsLong,
		"CompletionLeavesTheRest":                 completionLeavesTheRest,
		"ResponsesAreBytes":                       responsesAreBytes,
		"KeysDoNotMeet":                           keysDoNotMeet,
		"AnExpiredRecordIsNone":                   anExpiredRecordIsNone,
		"ACallWhoseContextHasEndedChangesNothing": aCallWhoseContextHasEndedChangesNothing,
		"ARecordShowsWhatIsKnown":                 aRecordShowsWhatIsKnown,
		"Listed":                                  listed,
		"Resolved":                                resolved,
		"AnyOrderOfCallsIsAsTheModelSays":         anyOrderOfCallsIsAsTheModelSays,
	} {
		t.Run(name, func(t *testing.T) {
			test(&trial{T: t, Subject: s, key: newKey("orders")})
		})
	}
}

const (
	lease     = 10 * time.Minute
	retention = 24 * time.Hour
	pause     = 20 * time.Minute

	printX = fingerprint.Print("v1:x")
	printY = fingerprint.Print("v1:y")
)

// trial is one test, with a key of its own.
type trial struct {
	*testing.T
	Subject
	key idempotency.Key
}

func newKey(operation string) idempotency.Key {
	return idempotency.Key{Operation: operation, Principal: "u1001", Value: rand.Text()}
}

// request is a claim by owner for request X.
func (t *trial) request(owner idempotency.Token) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: t.key, Fingerprint: printX, Owner: owner, Lease: lease, Retention: retention, Holder: "host/" + string(owner),
	}
}

// claim claims for owner and fails the test unless the outcome is want.
func (t *trial) claim(owner idempotency.Token, want idempotency.Outcome) idempotency.Claim {
	t.Helper()
	c, err := t.Store.Claim(t.Context(), t.request(owner))
	if err != nil {
		t.Fatalf("claim by %s: %v", owner, err)
	}
	if c.Outcome != want {
		t.Fatalf("claim by %s: %v, want %v", owner, c.Outcome, want)
	}
	return c
}

func (t *trial) complete(owner idempotency.Token, response string) (idempotency.Completion, error) {
	return t.Store.Complete(t.Context(), idempotency.CompleteRequest{
		Key: t.key, Owner: owner, Response: []byte(response), Retention: retention, Fingerprint: printX, Attempt: 1,
	})
}

func (t *trial) renew(owner idempotency.Token) error {
	return t.Store.Renew(t.Context(), idempotency.RenewRequest{Key: t.key, Owner: owner, Lease: lease, Retention: retention})
}

func (t *trial) unknown(owner idempotency.Token) error {
	return t.Store.MarkUnknown(t.Context(), idempotency.UnknownRequest{
		Key: t.key, Owner: owner, Reason: "the gateway was silent", Pause: pause, Retention: retention,
	})
}

func (t *trial) abandon(owner idempotency.Token, reconciled bool) error {
	return t.Store.Abandon(t.Context(), idempotency.AbandonRequest{Key: t.key, Owner: owner, Reconciled: reconciled})
}

func (t *trial) elapse(d time.Duration) {
	t.Helper()
	t.must(t.Elapse(t.Context(), t.key, d))
}

func (t *trial) get() idempotency.Record {
	t.Helper()
	r, err := t.Store.Get(t.Context(), t.key)
	t.must(err)
	return r
}

func (t *trial) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is fails the test unless err is want.
func (t *trial) is(what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// unchanged runs f and fails the test if it changes the record.
func (t *trial) unchanged(f func()) {
	t.Helper()
	before := t.get()
	f()
	if after := t.get(); !same(before, after) {
		t.Errorf("the record was %+v and is %+v", before, after)
	}
}

// same compares records, their expiry to the second: a store may tell it by what
// is left.
func same(a, b idempotency.Record) bool {
	near := a.ExpiresAt.Sub(b.ExpiresAt).Abs() < time.Minute
	return near && a.Key == b.Key && a.Fingerprint == b.Fingerprint && a.State == b.State && a.Attempt == b.Attempt &&
		a.Holder == b.Holder && a.Reason == b.Reason && a.StartedAt.Equal(b.StartedAt) &&
		a.LeaseUntil.Equal(b.LeaseUntil) && string(a.Response) == string(b.Response)
}
