package pgstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/quorumlock/quorumlock/idempotency"
)

// errRestless is no answer: the call may be made again.
var errRestless = errors.New("the record changed every time it was looked at")

// before is what a call that changed nothing had met when it began.
type before struct{ owner, state sql.NullString }

func (b before) is(owner idempotency.Token, state idempotency.State) bool {
	return b.owner.String == string(owner) && b.state.String == state.String()
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) (idempotency.Completion, error) {
	began := sql.NullTime{Time: r.StartedAt, Valid: !r.StartedAt.IsZero()}
	response := r.Response
	if response == nil {
		response = []byte{} // null is for records that have none
	}
	for range rounds {
		var done bool
		var met before
		err := s.db.QueryRowContext(ctx, s.say.complete, r.Key.String(), string(r.Owner), response,
			micros(r.Retention), string(r.Fingerprint), r.Attempt, began,
		).Scan(&done, &met.owner, &met.state)
		switch {
		case err != nil:
			return 0, err
		case done && !met.owner.Valid:
			return idempotency.Restored, nil
		case done:
			return idempotency.Stored, nil
		case met.is(r.Owner, idempotency.StateSuccess):
			return idempotency.AlreadyStored, nil
		case met.owner.Valid && met.owner.String != string(r.Owner):
			return 0, idempotency.ErrLeaseLost
		}
		// What was there when the statement began has changed since.
	}
	return 0, errRestless
}

// CompleteTx completes the record of a run with the result, in a transaction of
// the run's own that also has its effect: either both are committed or neither is.
// It is the last statement before the commit, since claims and renewals of this
// key wait for the transaction from then on.
//
// If the error is not nil, the transaction must be rolled back. If that wraps
// [idempotency.ErrLeaseLost], another has taken over, or the record is already
// complete: so it is after a commit that went through although its answer was
// lost. Then the run returns the error, and a retry finds out. After the commit
// the run returns the same result.
//
// With REPEATABLE READ and SERIALIZABLE the statement and the commit may fail with
// SQLSTATE 40001. The transaction is rolled back, and may be begun again.
func (s *Store) CompleteTx(ctx context.Context, tx *sql.Tx, ex *idempotency.Execution, result idempotency.Result) error {
	r := ex.Completion(result)
	return changed(tx.ExecContext(ctx, s.say.completeTx, r.Key.String(), string(r.Owner), r.Response, micros(r.Retention)))
}

// Abandon implements [idempotency.Store].
func (s *Store) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	for range rounds {
		var done bool
		var met before
		err := s.db.QueryRowContext(ctx, s.say.abandon, r.Key.String(), string(r.Owner), r.Reconciled).
			Scan(&done, &met.owner, &met.state)
		switch {
		case err != nil:
			return err
		case done || !met.owner.Valid || met.is(r.Owner, idempotency.StateUnknown):
			return nil
		case !met.is(r.Owner, idempotency.StateInProgress):
			return idempotency.ErrLeaseLost
		}
		// What was there when the statement began has changed since.
	}
	return errRestless
}

// Resolve implements [idempotency.Resolver].
func (s *Store) Resolve(ctx context.Context, r idempotency.Resolution) error {
	response := r.Response
	if response == nil {
		response = []byte{}
	}
	var n int
	err := s.db.QueryRowContext(ctx, s.say.resolve,
		r.Key.String(), r.Attempt, r.Happened, response, micros(r.Retention)).Scan(&n)
	if err == nil && n == 0 {
		return idempotency.ErrNotUnknown
	}
	return err
}

// DeleteExpired deletes records that have expired, up to limit of them, and
// returns how many. Expired records are as good as none, and only take room: it is
// for a ticker of the caller's, with a limit such as 1000, again at once while as
// many are deleted. Any number of processes may do it at once.
func (s *Store) DeleteExpired(ctx context.Context, limit int) (int, error) {
	result, err := s.db.ExecContext(ctx, s.say.expired, limit)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}
