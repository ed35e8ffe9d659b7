package idempotency

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// keeper renews the lease of one run, and ends the run's context when the lease
// is lost or the run has taken too long.
type keeper struct {
	guard *Guard
	ex    *Execution
	end   context.CancelCauseFunc // ends the run's context

	begun clock.Instant // when the run began
	held  clock.Instant // before the last request was sent that prolonged the lease
	tried clock.Instant // when a renewal was last tried
	late  bool          // that one got no answer
}

// keep returns the context of a run whose lease was claimed by a request sent
// after claimed, and what stops the keeping of it and waits until its goroutine
// has ended.
func (g *Guard) keep(ctx context.Context, ex *Execution, claimed clock.Instant) (run context.Context, stop func()) {
	run, end := context.WithCancelCause(ctx)
	work, done := context.WithCancel(ctx)
	k := &keeper{guard: g, ex: ex, end: end, begun: g.config.Clock.Now(), held: claimed, tried: claimed}
	var wait sync.WaitGroup
	wait.Go(func() { k.keep(work) })
	return run, func() {
		done()
		wait.Wait()
		end(nil)
	}
}

func (k *keeper) keep(work context.Context) {
	for {
		next, wait := k.due(k.guard.config.Clock.Now())
		switch next {
		case timeout:
			k.end(fmt.Errorf("after %v: %w", k.guard.config.ExecTimeout, context.DeadlineExceeded))
			return
		case lapsed:
			k.lose(fmt.Errorf("%w: it could not be renewed in time", ErrLeaseLost))
			return
		case renew:
			if err := k.renew(work); err != nil {
				k.lose(err)
				return
			}
		case idle:
			if clock.Sleep(work, k.guard.config.Clock, wait) != nil {
				return
			}
		}
	}
}

type duty uint8

const (
	idle duty = iota
	renew
	lapsed
	timeout
)

// margin is how long before its lease can have ended a run is told that it has:
// the store's clock may run faster than this one, and the run needs time to stop.
func margin(lease time.Duration) time.Duration { return lease / 10 }

// due is what there is to do now, or how long there is nothing.
func (k *keeper) due(now clock.Instant) (duty, time.Duration) {
	c := &k.guard.config
	every := c.Lease / 3
	if k.late {
		every = c.Lease / 12
	}
	untilTimeout := c.ExecTimeout - now.Lower(k.begun)
	untilLapse := c.Lease - margin(c.Lease) - now.Upper(k.held)
	untilRenewal := every - now.Lower(k.tried)
	switch {
	case untilTimeout <= 0:
		return timeout, 0
	case k.ex.Degraded: // there is no lease
		return idle, untilTimeout
	case untilLapse <= 0:
		return lapsed, 0
	case untilRenewal <= 0:
		return renew, 0
	}
	return idle, min(untilTimeout, untilLapse, untilRenewal)
}

// renew returns an error if the lease is known to be lost. No answer is none: the
// lease may be there, for as long as it was last known to last.
func (k *keeper) renew(ctx context.Context) error {
	c := &k.guard.config
	sent := c.Clock.Now()
	k.tried = sent
	once := patience{1, min(c.StoreTimeout, c.Lease/3, c.Lease-margin(c.Lease)-sent.Upper(k.held))}
	err := k.guard.step(ctx, k.ex.Key.Operation, "renew", once, func(ctx context.Context) error {
		return k.guard.store.Renew(ctx, RenewRequest{k.ex.Key, k.ex.owner, c.Lease, c.Retention})
	})
	k.late = err != nil
	switch {
	case err == nil:
		k.held = sent
	case definite(err):
		return err
	}
	return nil
}

func (k *keeper) lose(err error) {
	k.end(err)
	k.guard.config.Trace.lost(k.ex, err)
}
