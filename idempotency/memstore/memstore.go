// Package memstore keeps idempotency records in the memory of this process, for
// tests and for services of one process that may forget when they end.
package memstore

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
)

// Store is a store in memory. It is an [idempotency.Store],
// [idempotency.Lister] and [idempotency.Resolver]; its methods may be called
// concurrently. Records that have expired make room as others are claimed.
type Store struct {
	clock clock.Clock
	begun clock.Instant

	mu      sync.Mutex // guards records
	records map[idempotency.Key]*record
}

// record is a record and what only the store knows of it.
type record struct {
	idempotency.Record
	owner idempotency.Token
	taken idempotency.State // what it was in when its owner took it over; 0 if it did not
}

// New returns an empty Store that takes its time from c. nil means clock.System.
func New(c clock.Clock) *Store {
	if c == nil {
		c = clock.System{}
	}
	return &Store{clock: c, begun: c.Now(), records: map[idempotency.Key]*record{}}
}

// now is the store's time: that of its beginning, and what the monotonic clock
// has counted since, so that no step of the wall clock ends a lease.
func (s *Store) now() time.Time {
	return s.begun.Wall().Add(s.clock.Now().Lower(s.begun))
}

// at is the record of k, or nil.
func (s *Store) at(k idempotency.Key, now time.Time) *record {
	r := s.records[k]
	if r != nil && !now.Before(r.ExpiresAt) {
		delete(s.records, k)
		return nil
	}
	return r
}

// examined is how many records a claim looks at, to forget those that have
// expired. More are forgotten than come to be, as one claim makes one at most.
const examined = 4

func (s *Store) forget(now time.Time) {
	n := 0
	for k := range s.records {
		if n++; n > examined {
			return
		}
		s.at(k, now)
	}
}

// Claim implements [idempotency.Store].
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	if err := r.Validate(); err != nil {
		return idempotency.Claim{}, err
	}
	if err := ctx.Err(); err != nil {
		return idempotency.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.forget(now)
	rec := s.at(r.Key, now)
	if rec == nil {
		rec = &record{Record: idempotency.Record{Key: r.Key, Fingerprint: r.Fingerprint, StartedAt: now}}
		s.records[r.Key] = rec
		rec.own(r, now)
		return rec.claim(idempotency.Created, now), nil
	}
	live := now.Before(rec.LeaseUntil)
	switch {
	case rec.Fingerprint != r.Fingerprint && !slices.Contains(r.Alternates, rec.Fingerprint):
		return idempotency.Claim{Outcome: idempotency.Mismatch}, nil
	case rec.State == idempotency.StateSuccess:
		return rec.claim(idempotency.Replay, now), nil
	case rec.State == idempotency.StateInProgress && rec.owner == r.Owner:
		rec.lease(now, r.Lease, r.Retention)
	case live && rec.State == idempotency.StateInProgress:
		return rec.claim(idempotency.InProgress, now), nil
	case live:
		return rec.claim(idempotency.Undecided, now), nil
	default:
		rec.taken = rec.State
		rec.own(r, now)
	}
	if rec.taken == 0 {
		return rec.claim(idempotency.Created, now), nil
	}
	c := rec.claim(idempotency.Takeover, now)
	c.Record.State = rec.taken
	return c, nil
}

// own makes the record that of a claim's owner.
func (rec *record) own(r idempotency.ClaimRequest, now time.Time) {
	rec.owner, rec.Holder = r.Owner, r.Holder
	rec.State = idempotency.StateInProgress
	rec.Attempt++
	rec.lease(now, r.Lease, r.Retention)
}

func (rec *record) lease(now time.Time, lease, retention time.Duration) {
	rec.LeaseUntil = now.Add(lease)
	rec.keep(now, retention)
}

// keep makes the record live for at least retention from now.
func (rec *record) keep(now time.Time, retention time.Duration) {
	if until := now.Add(retention); until.After(rec.ExpiresAt) {
		rec.ExpiresAt = until
	}
}

func (rec *record) claim(o idempotency.Outcome, now time.Time) idempotency.Claim {
	return idempotency.Claim{
		Outcome: o, Record: rec.copy(), Age: now.Sub(rec.StartedAt), Left: max(0, rec.LeaseUntil.Sub(now)),
	}
}

func (rec *record) copy() idempotency.Record {
	r := rec.Record
	r.Response = bytes.Clone(r.Response)
	return r
}

// with runs f on the record of k, or nil, while nobody else has the records.
func (s *Store) with(ctx context.Context, k idempotency.Key, f func(rec *record, now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return f(s.at(k, now), now)
}

// Renew implements [idempotency.Store].
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.with(ctx, r.Key, func(rec *record, now time.Time) error {
		if rec == nil || rec.owner != r.Owner || rec.State != idempotency.StateInProgress {
			return idempotency.ErrLeaseLost
		}
		rec.lease(now, r.Lease, r.Retention)
		return nil
	})
}

// Get implements [idempotency.Store].
func (s *Store) Get(ctx context.Context, k idempotency.Key) (found idempotency.Record, err error) {
	err = s.with(ctx, k, func(rec *record, _ time.Time) error {
		if rec == nil {
			return idempotency.ErrNotFound
		}
		found = rec.copy()
		return nil
	})
	return found, err
}

// List implements [idempotency.Lister]. It yields the records as they were when
// it began.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		for _, r := range s.matching(f) {
			if err := ctx.Err(); err != nil {
				yield(idempotency.Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (s *Store) matching(f idempotency.Filter) []idempotency.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var found []idempotency.Record
	for k := range s.records {
		rec := s.at(k, now)
		if rec == nil || f.State != 0 && rec.State != f.State {
			continue
		}
		if f.Due && (rec.State == idempotency.StateSuccess || now.Before(rec.LeaseUntil)) {
			continue
		}
		found = append(found, rec.copy())
	}
	return found
}
