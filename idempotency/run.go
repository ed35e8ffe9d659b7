package idempotency

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/clock"
)

const (
	minRetryAfter = time.Second
	maxReason     = 200 // bytes
)

// errPanicked is what a [RunEvent] has for a run that did not return.
var errPanicked = errors.New("the run panicked, or ended its goroutine")

// takeOver finds out what became of the attempts before, and runs fn only if
// they are known to have done nothing.
func (g *Guard) takeOver(ctx context.Context, ex *Execution, claimed clock.Instant, before Record, fn Func) (Result, Info, error) {
	info := Info{Outcome: Takeover, Attempt: ex.Attempt}
	outlives := context.WithoutCancel(ctx)
	run, stop := g.keep(outlives, ex, claimed)
	answered := false
	defer func() {
		stop()
		if !answered {
			g.markUnknown(outlives, ex, "the Reconciler panicked", g.config.UnknownRetry)
		}
	}()
	verdict := g.ask(run, before)
	answered = true
	if verdict.kind == didNotHappen && run.Err() != nil {
		verdict = CannotTell(context.Cause(run).Error())
	}
	switch verdict.kind {
	case happened:
		stop()
		info.Replayed = true
		info.StoreErr = g.complete(outlives, ex, verdict.result)
		info.Stored = info.StoreErr == nil
		if verdict.result.Tombstone {
			info.Replayed = false
			return verdict.result, info, ErrNotReplayable
		}
		return verdict.result, info, nil
	case didNotHappen:
		ex.reconciled = true
		return g.runKept(outlives, run, stop, ex, fn)
	}
	stop()
	info.StoreErr = g.markUnknown(outlives, ex, verdict.reason, g.config.UnknownRetry)
	info.Stored = info.StoreErr == nil
	return Result{}, info, &UnknownError{verdict.reason, g.config.UnknownRetry, ex.Attempt}
}

func (g *Guard) run(ctx context.Context, ex *Execution, claimed clock.Instant, fn Func) (Result, Info, error) {
	outlives := context.WithoutCancel(ctx)
	run, stop := g.keep(outlives, ex, claimed)
	return g.runKept(outlives, run, stop, ex, fn)
}

// runKept runs fn under the context run, and stores what came of it under
// outlives once the lease is no longer kept.
func (g *Guard) runKept(outlives, run context.Context, stop func(), ex *Execution, fn Func) (Result, Info, error) {
	info := Info{Outcome: Created, Attempt: ex.Attempt, Ran: true, Degraded: ex.Degraded}
	if ex.Takeover {
		info.Outcome = Takeover
	}
	begun := g.config.Clock.Now()
	returned := false
	// Without recover: a panic goes on with its own stack, and runtime.Goexit comes
	// by here too.
	defer func() {
		elapsed := g.config.Clock.Now().Lower(begun)
		stop()
		if !returned {
			err := g.markUnknown(outlives, ex, errPanicked.Error(), g.afterFailure())
			g.config.Trace.ran(ex, elapsed, err == nil, errPanicked)
		}
	}()
	result, err := fn(run, ex)
	returned = true
	elapsed := g.config.Clock.Now().Lower(begun)
	stop()
	switch {
	case err == nil:
		info.StoreErr = g.complete(outlives, ex, result)
	case hadNoEffect(err):
		info.StoreErr = g.abandon(outlives, ex, g.thrice())
	default:
		info.StoreErr = g.markUnknown(outlives, ex, "the run failed: "+err.Error(), g.afterFailure())
	}
	info.Stored = info.StoreErr == nil
	g.config.Trace.ran(ex, elapsed, info.Stored, err)
	return result, info, err
}

func (g *Guard) complete(ctx context.Context, ex *Execution, r Result) error {
	request := ex.Completion(r)
	return g.step(ctx, ex.Key.Operation, "complete", g.thrice(), func(ctx context.Context) error {
		_, err := g.store.Complete(ctx, request)
		return err
	})
}

func (g *Guard) abandon(ctx context.Context, ex *Execution, p patience) error {
	return g.step(ctx, ex.Key.Operation, "abandon", p, func(ctx context.Context) error {
		return g.store.Abandon(ctx, AbandonRequest{ex.Key, ex.owner, ex.reconciled})
	})
}

// afterFailure is the pause before another attempt may look into what became of a
// run that has just failed: none if there is somebody to ask.
func (g *Guard) afterFailure() time.Duration {
	if g.config.Reconciler != nil {
		return 0
	}
	return g.config.UnknownRetry
}

// markUnknown leaves the record to the next attempt, after pause.
func (g *Guard) markUnknown(ctx context.Context, ex *Execution, reason string, pause time.Duration) error {
	return g.step(ctx, ex.Key.Operation, "unknown", g.thrice(), func(ctx context.Context) error {
		return g.store.MarkUnknown(ctx, UnknownRequest{
			Key: ex.Key, Owner: ex.owner, Reason: clean(reason),
			Pause: pause, Retention: g.config.Retention,
		})
	})
}

// clean is reason as every store can keep it.
func clean(reason string) string {
	reason = strings.ReplaceAll(strings.ToValidUTF8(reason, "?"), "\x00", "?")
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
