package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
)

var errCut = errors.New("connection reset")

// fault is what happens to a call of a store.
type fault uint8

const (
	fine         fault = iota
	unsent             // it never reaches the store
	unheard            // it is carried out, and its answer is lost
	hanging            // it never reaches the store, and nobody says so
	hangingAfter       // it is carried out, and nothing comes back
	late               // it is carried out long after its caller has given up
)

func (f fault) String() string {
	return [...]string{"fine", "unsent", "unheard", "hanging", "hanging after", "late"}[f]
}

// lateness is longer than any caller waits, and shorter than leases.
const lateness = 4 * time.Second

// way is a store as one process sees it: what is between them fails as fails says,
// and takes takes in each direction. A dead process reaches it no more.
type way struct {
	idempotency.Store
	fails func(call int, step string) fault
	takes func(step string) time.Duration

	under sync.WaitGroup // calls that are still on their way

	mu    sync.Mutex // guards what follows
	calls int
	dead  bool
}

func (w *way) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

func (w *way) number() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	return w.calls, w.dead
}

// pass makes a call over the way and returns its answer, if that comes back.
func pass[T any](ctx context.Context, w *way, step string, call func(context.Context) (T, error)) (none T, _ error) {
	n, dead := w.number()
	f := fine
	if w.fails != nil {
		f = w.fails(n, step)
	}
	if dead {
		f = unsent
	}
	travel := func() error {
		if w.takes == nil {
			return nil
		}
		return clock.Sleep(ctx, clock.NewSkewed(1), w.takes(step))
	}
	if err := travel(); err != nil {
		return none, err
	}
	switch f {
	case unsent:
		return none, errCut
	case late:
		w.under.Go(func() {
			time.Sleep(lateness)
			call(context.WithoutCancel(ctx))
		})
		fallthrough
	case hanging:
		<-ctx.Done()
		return none, ctx.Err()
	}
	answer, err := call(ctx)
	if err := travel(); err != nil {
		return none, err
	}
	switch f {
	case unheard:
		return none, errCut
	case hangingAfter:
		<-ctx.Done()
		return none, ctx.Err()
	}
	return answer, err
}

// passAlone is pass for a call that answers with an error alone.
func passAlone(ctx context.Context, w *way, step string, call func(context.Context) error) error {
	_, err := pass(ctx, w, step, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (w *way) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	return pass(ctx, w, "claim", func(ctx context.Context) (idempotency.Claim, error) { return w.Store.Claim(ctx, r) })
}

func (w *way) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return passAlone(ctx, w, "renew", func(ctx context.Context) error { return w.Store.Renew(ctx, r) })
}

func (w *way) Complete(ctx context.Context, r idempotency.CompleteRequest) (idempotency.Completion, error) {
	return pass(ctx, w, "complete", func(ctx context.Context) (idempotency.Completion, error) { return w.Store.Complete(ctx, r) })
}

func (w *way) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	return passAlone(ctx, w, "unknown", func(ctx context.Context) error { return w.Store.MarkUnknown(ctx, r) })
}

func (w *way) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	return passAlone(ctx, w, "abandon", func(ctx context.Context) error { return w.Store.Abandon(ctx, r) })
}
