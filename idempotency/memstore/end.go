package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) (done idempotency.Completion, err error) {
	err = s.with(ctx, r.Key, func(rec *record, now time.Time) error {
		switch {
		case rec == nil:
			rec = &record{owner: r.Owner, Record: idempotency.Record{
				Key: r.Key, Fingerprint: r.Fingerprint, Attempt: r.Attempt, StartedAt: r.StartedAt,
			}}
			if r.StartedAt.IsZero() {
				rec.StartedAt = now
			}
			s.records[r.Key] = rec
			done = idempotency.Restored
		case rec.owner != r.Owner:
			return idempotency.ErrLeaseLost
		case rec.State == idempotency.StateSuccess:
			done = idempotency.AlreadyStored
			return nil
		default:
			done = idempotency.Stored
		}
		rec.succeed(r.Response, now, r.Retention)
		return nil
	})
	return done, err
}

func (rec *record) succeed(response []byte, now time.Time, retention time.Duration) {
	rec.State, rec.Response = idempotency.StateSuccess, bytes.Clone(response)
	rec.Reason, rec.LeaseUntil, rec.taken = "", time.Time{}, 0
	rec.keep(now, retention)
}

// MarkUnknown implements [idempotency.Store].
func (s *Store) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	return s.with(ctx, r.Key, func(rec *record, now time.Time) error {
		if rec == nil || rec.owner != r.Owner || rec.State == idempotency.StateSuccess {
			return idempotency.ErrLeaseLost
		}
		rec.State, rec.Reason = idempotency.StateUnknown, r.Reason
		rec.lease(now, r.Pause, r.Retention)
		return nil
	})
}

// Abandon implements [idempotency.Store].
func (s *Store) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	return s.with(ctx, r.Key, func(rec *record, now time.Time) error {
		switch {
		case rec == nil:
			return nil
		case rec.owner != r.Owner || rec.State == idempotency.StateSuccess:
			return idempotency.ErrLeaseLost
		case rec.State == idempotency.StateUnknown: // it has let go before
		case rec.taken == 0 || r.Reconciled:
			delete(s.records, r.Key)
		default:
			rec.State, rec.LeaseUntil = idempotency.StateUnknown, now
		}
		return nil
	})
}

// Resolve implements [idempotency.Resolver].
func (s *Store) Resolve(ctx context.Context, r idempotency.Resolution) error {
	return s.with(ctx, r.Key, func(rec *record, now time.Time) error {
		if rec == nil || rec.State != idempotency.StateUnknown || rec.Attempt != r.Attempt {
			return idempotency.ErrNotUnknown
		}
		if !r.Happened {
			delete(s.records, r.Key)
			return nil
		}
		rec.owner = ""
		rec.succeed(r.Response, now, r.Retention)
		return nil
	})
}
