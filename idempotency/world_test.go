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
	takes func() time.Duration

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

func (w *way) pass(ctx context.Context, step string, call func(context.Context) error) error {
	n, dead := w.number()
	f := fine
	if w.fails != nil {
		f = w.fails(n, step)
	}
	if dead {
		f = unsent
	}
	if w.takes != nil && clock.Sleep(ctx, clock.NewSkewed(1), w.takes()) != nil {
		return ctx.Err()
	}
	switch f {
	case unsent:
		return errCut
	case late:
		w.under.Go(func() {
			time.Sleep(lateness)
			call(context.WithoutCancel(ctx))
		})
		fallthrough
	case hanging:
		<-ctx.Done()
		return ctx.Err()
	}
	err := call(ctx)
	if w.takes != nil && clock.Sleep(ctx, clock.NewSkewed(1), w.takes()) != nil {
		return ctx.Err()
	}
	switch f {
	case unheard:
		return errCut
	case hangingAfter:
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (w *way) Claim(ctx context.Context, r idempotency.ClaimRequest) (c idempotency.Claim, err error) {
	err = w.pass(ctx, "claim", func(ctx context.Context) error {
		c, err = w.Store.Claim(ctx, r)
		return err
	})
	return c, err
}

func (w *way) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	return w.pass(ctx, "renew", func(ctx context.Context) error { return w.Store.Renew(ctx, r) })
}

func (w *way) Complete(ctx context.Context, r idempotency.CompleteRequest) (c idempotency.Completion, err error) {
	err = w.pass(ctx, "complete", func(ctx context.Context) error {
		c, err = w.Store.Complete(ctx, r)
		return err
	})
	return c, err
}

func (w *way) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	return w.pass(ctx, "unknown", func(ctx context.Context) error { return w.Store.MarkUnknown(ctx, r) })
}

func (w *way) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	return w.pass(ctx, "abandon", func(ctx context.Context) error { return w.Store.Abandon(ctx, r) })
}
