package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// patience is how long one step in the store may take, and in how many tries.
type patience struct {
	tries int
	time  time.Duration
}

// thrice is the patience with a step on which something depends.
func (g *Guard) thrice() patience { return patience{3, g.config.StoreTimeout} }

// step carries out one step in the store and tries again while there is no
// definite answer, as every step may be sent twice. Without one the error wraps
// ErrStoreUnavailable, or the context's if that has ended.
func (g *Guard) step(ctx context.Context, operation, name string, p patience, call func(context.Context) error) error {
	begun := g.config.Clock.Now()
	pause := p.time / 64
	for try := 1; ; try++ {
		left := p.time - g.config.Clock.Now().Lower(begun)
		if try < p.tries {
			left /= 2 // an answer that was lost does not use up the tries that are left
		}
		err := within(ctx, left, call)
		if err != nil && !definite(err) && try < p.tries &&
			g.config.Clock.Now().Lower(begun)+pause < p.time && clock.Sleep(ctx, g.config.Clock, pause) == nil {
			pause *= 4
			continue
		}
		g.config.Trace.called(operation, name, try, g.config.Clock.Now().Lower(begun), err)
		switch {
		case err == nil || definite(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w: %w", name, context.Cause(ctx), err)
		}
		return fmt.Errorf("%s: %w: %w", name, ErrStoreUnavailable, err)
	}
}

func within(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return call(ctx)
}

// definite reports whether err is a store's answer rather than the lack of one.
func definite(err error) bool {
	for _, answer := range []error{ErrLeaseLost, ErrNotFound, ErrNotUnknown, ErrInvalid} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}
