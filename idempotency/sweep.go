package idempotency

import (
	"context"
	"errors"
	"fmt"
)

// SweepReport counts what a sweep found.
type SweepReport struct {
	Repaired int // had happened; SUCCESS now
	Freed    int // had not happened; the key is free
	Unknown  int // nobody could tell
	Busy     int // another was quicker
}

// Sweep looks into records that were interrupted and that no retry has come for,
// up to limit of them, and asks the Reconciler about each. What happened becomes
// SUCCESS, what did not is freed, what nobody can tell stays UNKNOWN for another
// pause. It runs nothing. Many processes may sweep at once; it is called every
// minute or so, by a ticker of the caller's.
//
// It ends early with the first error, with what it has done until then: that of
// ctx, [ErrStoreUnavailable], or [ErrInvalid] if limit is less than 1, there is no
// Reconciler or the store is no [Lister].
func (g *Guard) Sweep(ctx context.Context, limit int) (SweepReport, error) {
	var report SweepReport
	lister, ok := g.store.(Lister)
	switch {
	case !ok:
		return report, invalid("the store cannot list: %T", g.store)
	case limit < 1:
		return report, invalid("the limit is %d: want at least 1", limit)
	case g.config.Reconciler == nil:
		return report, invalid("Config.Reconciler is nil: %s", noReconciler)
	}
	due := make([]Record, 0, min(limit, 1024))
	for record, err := range lister.List(ctx, Filter{Due: true}) {
		if err != nil {
			return report, fmt.Errorf("list: %w: %w", ErrStoreUnavailable, err)
		}
		if len(due) == limit {
			break
		}
		due = append(due, record)
	}
	for _, record := range due {
		if err := g.look(ctx, record, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

// errUnrun is what Sweep returns in place of running.
var errUnrun = NoEffect(errors.New("sweeps run nothing"))

// look takes one record over as a retry would, except that it runs nothing.
func (g *Guard) look(ctx context.Context, r Record, report *SweepReport) error {
	request := Request{Key: r.Key, Fingerprint: r.Fingerprint}
	_, info, err := g.Do(ctx, request, func(context.Context, *Execution) (Result, error) {
		return Result{}, errUnrun
	})
	switch {
	case info.Outcome == Created && info.Ran: // it had gone, and has again
	case err == errUnrun && info.Stored:
		report.Freed++
	case errors.Is(err, ErrUnknown) && info.Outcome == Takeover:
		report.Unknown++
	case err == nil && info.Outcome == Takeover, errors.Is(err, ErrNotReplayable) && info.Outcome == Takeover:
		report.Repaired++
	case errors.Is(err, ErrStoreUnavailable), ctx.Err() != nil:
		return err
	default:
		report.Busy++
	}
	return nil
}
