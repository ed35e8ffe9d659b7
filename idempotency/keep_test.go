package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
)

// whenItEnds is a run that returns the moment when its context ends and why.
func whenItEnds(at *time.Duration, why *error) idempotency.Func {
	return func(ctx context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
		begun := time.Now()
		<-ctx.Done()
		*at, *why = time.Since(begun), context.Cause(ctx)
		return idempotency.Result{Response: []byte("late")}, nil
	}
}

// The first process is as good as stopped: a minute is a second to it.
//
// field-reports: 33
func TestARunThatHasBeenReplacedIsToldAndOverwritesNothing(t *testing.T) {
	for name, ends := range map[string]func() (idempotency.Result, error){
		"it completes": func() (idempotency.Result, error) { return idempotency.Result{Response: []byte("late")}, nil },
		"it fails":     func() (idempotency.Result, error) { return idempotency.Result{}, errors.New("500") },
		"it gives up": func() (idempotency.Result, error) {
			return idempotency.Result{}, idempotency.NoEffect(errors.New("401"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memory()
				var lost []idempotency.LostEvent
				stopped := guard(t, s, idempotency.Config{Clock: clock.NewSkewed(1.0 / 60), Trace: &idempotency.Trace{
					Lost: func(e idempotency.LostEvent) { lost = append(lost, e) },
				}})
				done := make(chan idempotency.Info)
				var at time.Duration
				var why error
				go func() {
					_, info, _ := stopped.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
						whenItEnds(&at, &why)(ctx, ex)
						return ends()
					})
					done <- info
				}()
				time.Sleep(16 * time.Second)

				var questions []idempotency.Record
				g := guard(t, s, idempotency.Config{Reconciler: saying(idempotency.DidNotHappen(), nil, &questions)})
				var c counter
				if _, info, err := g.Do(t.Context(), asked, c.answering("of the next", 20*time.Second)); err != nil || !info.Stored || info.Attempt != 2 {
					t.Fatalf("%+v, %v", info, err)
				}
				info := <-done
				if !errors.Is(why, idempotency.ErrLeaseLost) || at != 5*time.Minute {
					t.Errorf("told after %v: %v", at, why)
				}
				if info.Stored || !errors.Is(info.StoreErr, idempotency.ErrLeaseLost) || len(lost) != 1 || lost[0].Attempt != 1 {
					t.Errorf("%+v, %+v", info, lost)
				}
				r, _, err := g.Do(t.Context(), asked, c.answering("", 0))
				if err != nil || string(r.Response) != "of the next" || c.runs() != 1 {
					t.Errorf("replayed: %q, %v, %d runs", r.Response, err, c.runs())
				}
			})
		})
	}
}

// While the store is out of reach, a run goes on for as long as its lease lasts
// for certain: not at the first failure, and not longer.
func TestARunEndsBeforeItsLeaseMayHave(t *testing.T) {
	for name, c := range map[string]struct {
		from, to time.Duration // while the store is out of reach
		f        fault
		ends     time.Duration // 0: with its time
	}{
		"for good":             {0, time.Hour, unsent, 13500 * time.Millisecond},
		"for good, and silent": {0, time.Hour, hanging, 13500 * time.Millisecond},
		"after two renewals":   {11 * time.Second, time.Hour, unsent, 23500 * time.Millisecond},
		"for a while":          {4 * time.Second, 12 * time.Second, unsent, 0},
		"answers are lost":     {0, time.Hour, unheard, 13500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				begun := time.Now()
				s := &way{Store: memory(), fails: func(_ int, step string) fault {
					if since := time.Since(begun); step == "renew" && since >= c.from && since < c.to {
						return c.f
					}
					return fine
				}}
				g := guard(t, s, idempotency.Config{Lease: 15 * time.Second, ExecTimeout: time.Minute})
				var at time.Duration
				var why error
				_, info, err := g.Do(t.Context(), asked, whenItEnds(&at, &why))
				want, because := c.ends, idempotency.ErrLeaseLost
				if want == 0 {
					want, because = time.Minute, context.DeadlineExceeded
				}
				if at != want || !errors.Is(why, because) {
					t.Errorf("it ended after %v: %v, want %v: %v", at, why, want, because)
				}
				// Nobody has taken over, so who is late still completes.
				if err != nil || !info.Stored {
					t.Errorf("%+v, %v", info, err)
				}
			})
		})
	}
}

// A lease counts from when it was asked for, not from when the answer came.
func TestALeaseCountsFromTheRequest(t *testing.T) {
	for slow, ends := range map[string]time.Duration{
		"claim": 13500*time.Millisecond - 4*time.Second, // sent 4 s before it ran
		"renew": 13500*time.Millisecond + 5*time.Second, // sent at 5 s
	} {
		t.Run(slow, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				renewals := 0
				s := &way{Store: memory(),
					takes: func(step string) time.Duration {
						if step == slow {
							return 2 * time.Second
						}
						return 0
					},
					fails: func(_ int, step string) fault {
						if step == "renew" {
							renewals++
						}
						if renewals > 1 || renewals == 1 && slow == "claim" {
							return unsent
						}
						return fine
					}}
				g := guard(t, s, idempotency.Config{StoreTimeout: 10 * time.Second, ExecTimeout: time.Hour})
				var at time.Duration
				var why error
				g.Do(t.Context(), asked, whenItEnds(&at, &why))
				if at != ends || !errors.Is(why, idempotency.ErrLeaseLost) {
					t.Errorf("it ended after %v: %v, want %v", at, why, ends)
				}
			})
		})
	}
}

// The machine slept through the lease: the run is told when it wakes up.
func TestASuspendEndsARun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := clock.NewSkewed(1)
		g := guard(t, memory(), idempotency.Config{Clock: c})
		var at time.Duration
		var why error
		time.AfterFunc(time.Second, func() { c.Suspend(time.Hour) })
		g.Do(t.Context(), asked, whenItEnds(&at, &why))
		if !errors.Is(why, idempotency.ErrLeaseLost) || at > 5*time.Second {
			t.Errorf("told after %v: %v", at, why)
		}
	})
}

// The owner of a record goes by the store's clock: that of a client may be wrong
// by an hour, and its rate by some percent.
func TestClientsClocksDecideNothing(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		bubble(t, func(t *testing.T) {
			s := memory()
			a, b := clock.NewSkewed(1.05), clock.NewSkewed(0.95)
			a.Step(wrong)
			b.Step(-wrong)
			dead := &way{Store: s}
			first := guard(t, dead, idempotency.Config{Clock: a})
			second := guard(t, s, idempotency.Config{Clock: b})
			var c counter
			attempt(t, first, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
				c.n.Add(1)
				dead.die()
				panic("killed")
			})
			for range 14 {
				time.Sleep(time.Second)
				if _, _, err := second.Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrInProgress) {
					t.Fatalf("%v, off by %v: %v", time.Now(), wrong, err)
				}
			}
			time.Sleep(time.Second)
			if _, info, err := second.Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrUnknown) || info.Outcome != idempotency.Takeover {
				t.Errorf("off by %v: %+v, %v", wrong, info, err)
			}
			if c.runs() != 1 {
				t.Errorf("off by %v: %d runs", wrong, c.runs())
			}
		})
	}
}
