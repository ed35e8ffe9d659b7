// Package pgstore keeps idempotency records in a table of PostgreSQL 12 or later,
// over database/sql with whatever driver the program has. Leases go by the
// server's clock.
//
// Where the table is in the database that also holds the effects, a run can
// complete its record in the transaction that has the effect: see
// [Store.CompleteTx]. Then there is no moment at which one is there without the
// other.
//
// The lease has to be longer than any wait for a connection of the pool: renewals
// wait there like everybody else, and a run whose renewals wait for a lease loses
// it. Where the pool is used up now and then, records want one of their own.
package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

// Config says how records are kept. The zero value is valid.
type Config struct {
	// Table is the table's name, alone or after that of its schema and a dot. It is
	// quoted, so upper case counts. "" means idempotency_record.
	Table string
}

// Store is a store in PostgreSQL. It is an [idempotency.Store],
// [idempotency.Lister] and [idempotency.Resolver]; its methods may be called
// concurrently.
type Store struct {
	db  *sql.DB
	say statements
}

// New returns a Store that uses db, which stays the caller's. The table is made
// from [Store.Schema], by the caller. The error wraps [idempotency.ErrInvalid].
func New(db *sql.DB, c Config) (*Store, error) {
	if c.Table == "" {
		c.Table = "idempotency_record"
	}
	say, err := statementsFor(c.Table)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", idempotency.ErrInvalid, err)
	}
	return &Store{db, say}, nil
}

// Schema is the statements that make the table and its indexes if they are not
// there.
func (s *Store) Schema() string { return s.say.schema }

// row is a record as it is in the table.
type row struct {
	fingerprint, state, owner, holder, reason string
	leaseUntil, startedAt, expiresAt          time.Time
	attempt                                   int64
	takenOver                                 sql.NullString
	response                                  []byte
}

// into is where the columns go, in their order.
func (r *row) into() []any {
	return []any{
		&r.fingerprint, &r.state, &r.owner, &r.leaseUntil, &r.attempt, &r.startedAt, &r.takenOver,
		&r.holder, &r.reason, &r.response, &r.expiresAt,
	}
}

func (r *row) record(k idempotency.Key) idempotency.Record {
	rec := idempotency.Record{
		Key: k, Fingerprint: fingerprint.Print(r.fingerprint), State: stateOf(r.state), Attempt: r.attempt,
		Holder: r.holder, Reason: r.reason, StartedAt: r.startedAt, LeaseUntil: r.leaseUntil, ExpiresAt: r.expiresAt,
		Response: r.response,
	}
	if rec.State == idempotency.StateSuccess {
		rec.LeaseUntil = time.Time{}
	}
	return rec
}

func stateOf(name string) idempotency.State {
	for _, s := range []idempotency.State{idempotency.StateInProgress, idempotency.StateSuccess, idempotency.StateUnknown} {
		if s.String() == name {
			return s
		}
	}
	return 0
}

// rounds is how often a call is made if what it met had changed by the time it
// looked.
const rounds = 3

// Claim implements [idempotency.Store]. It is one statement, and waits for a
// transaction that has completed the record and not ended.
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	if err := r.Validate(); err != nil {
		return idempotency.Claim{}, err
	}
	prints := append([]fingerprint.Print{r.Fingerprint}, r.Alternates...)
	var last idempotency.Claim
	for range rounds {
		var claimed bool
		var got row
		var now time.Time
		err := s.db.QueryRowContext(ctx, s.say.claim, r.Key.String(), string(r.Fingerprint), string(r.Owner), r.Holder,
			micros(r.Lease), micros(r.Retention), array(prints),
		).Scan(append(append([]any{&claimed}, got.into()...), &now)...)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it has come to be meanwhile
			continue
		case err != nil:
			return idempotency.Claim{}, err
		}
		c, settled := answer(r.Key, got, now, claimed, slices.Contains(prints, fingerprint.Print(got.fingerprint)))
		if settled {
			return c, nil
		}
		last = c
	}
	// Others have been quicker every time, so one of them has it.
	last.Outcome = idempotency.InProgress
	return last, nil
}

// answer is what a row means to a claim, and whether it says all there is to say:
// one that was lapsed when the statement began, and was not claimed by it, has
// been taken over by another since.
func answer(k idempotency.Key, r row, now time.Time, claimed, same bool) (idempotency.Claim, bool) {
	c := idempotency.Claim{
		Record: r.record(k), Age: max(0, now.Sub(r.startedAt)), Left: max(0, r.leaseUntil.Sub(now)),
	}
	switch {
	case claimed && r.takenOver.Valid:
		c.Outcome, c.Record.State = idempotency.Takeover, stateOf(r.takenOver.String)
	case claimed:
		c.Outcome = idempotency.Created
	case !same:
		c.Outcome = idempotency.Mismatch
	case c.Record.State == idempotency.StateSuccess:
		c.Outcome, c.Left = idempotency.Replay, 0
	case c.Record.State == idempotency.StateUnknown:
		c.Outcome = idempotency.Undecided
	default:
		c.Outcome = idempotency.InProgress
	}
	open := c.Outcome == idempotency.Undecided || c.Outcome == idempotency.InProgress
	return c, !open || c.Left > 0
}

// change runs a statement that changes the one record that is the caller's.
func (s *Store) change(ctx context.Context, statement string, args ...any) error {
	return changed(s.db.ExecContext(ctx, statement, args...))
}

func changed(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return idempotency.ErrLeaseLost
	}
	return nil
}

// Renew implements [idempotency.Store].
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return s.change(ctx, s.say.renew, r.Key.String(), string(r.Owner), micros(r.Lease), micros(r.Retention))
}

// MarkUnknown implements [idempotency.Store].
func (s *Store) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	return s.change(ctx, s.say.unknown, r.Key.String(), string(r.Owner), r.Reason, micros(r.Pause), micros(r.Retention))
}

// Get implements [idempotency.Store].
func (s *Store) Get(ctx context.Context, k idempotency.Key) (idempotency.Record, error) {
	var r row
	err := s.db.QueryRowContext(ctx, s.say.get, k.String()).Scan(r.into()...)
	if errors.Is(err, sql.ErrNoRows) {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return r.record(k), err
}

// micros is d as statements take it, rounded up, unless it is the longest there is.
func micros(d time.Duration) int64 {
	d = min(d, math.MaxInt64-time.Microsecond)
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// array is prints as the text of an array: drivers differ in what else they take
// for one.
func array(prints []fingerprint.Print) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	texts := make([]string, len(prints))
	for i, p := range prints {
		texts[i] = `"` + quote.Replace(string(p)) + `"`
	}
	return "{" + strings.Join(texts, ",") + "}"
}
