package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// saying is a Reconciler that remembers what it was asked and says v.
func saying(v idempotency.Verdict, err error, asked *[]idempotency.Record) idempotency.Reconciler {
	return func(_ context.Context, r idempotency.Record) (idempotency.Verdict, error) {
		*asked = append(*asked, r)
		return v, err
	}
}

// A run was interrupted, before its effect, after it, or nobody knows; its retry
// comes after the lease.
func TestWhoTakesOverAsksBeforeRunning(t *testing.T) {
	silent := errors.New("the table does not answer")
	for name, c := range map[string]struct {
		verdict idempotency.Verdict
		err     error
		answer  string // of the retry; "" if it gets none
		runs    int
		then    idempotency.State
	}{
		"it happened":              {idempotency.Happened(idempotency.Result{Response: []byte("o1001")}), nil, "o1001", 0, idempotency.StateSuccess},
		"it did not":               {idempotency.DidNotHappen(), nil, "run", 1, idempotency.StateSuccess},
		"nobody can tell":          {idempotency.CannotTell("two orders match"), nil, "", 0, idempotency.StateUnknown},
		"the question failed":      {idempotency.Verdict{}, silent, "", 0, idempotency.StateUnknown},
		"a failure is not its say": {idempotency.DidNotHappen(), silent, "", 0, idempotency.StateUnknown},
		"nothing was said":         {idempotency.Verdict{}, nil, "", 0, idempotency.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memory()
				interrupted(t, s)
				var questions []idempotency.Record
				g := guard(t, s, idempotency.Config{Reconciler: saying(c.verdict, c.err, &questions)})
				var run counter
				var seen idempotency.Execution
				r, info, err := g.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
					seen = *ex
					return run.answering("run", 0)(ctx, ex)
				})
				if len(questions) != 1 || questions[0].Key != order || questions[0].Attempt != 2 || questions[0].Holder == "gone/1" ||
					questions[0].State != idempotency.StateInProgress || questions[0].StartedAt.IsZero() {
					t.Errorf("asked: %+v", questions)
				}
				if run.runs() != c.runs || state(t, s) != c.then || info.Outcome != idempotency.Takeover || !info.Stored || info.Attempt != 2 {
					t.Errorf("%d runs, %v, %+v", run.runs(), state(t, s), info)
				}
				if c.runs == 1 && (!seen.Takeover || seen.Attempt != 2) {
					t.Errorf("the run saw %+v", seen)
				}
				if c.answer == "" {
					var unknown *idempotency.UnknownError
					if !errors.As(err, &unknown) || unknown.RetryAfter != 30*time.Second || unknown.Attempt != 2 || unknown.Reason == "" {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil || string(r.Response) != c.answer || info.Replayed != (c.runs == 0) {
					t.Errorf("%q, %+v, %v", r.Response, info, err)
				}
				again, _, err := g.Do(t.Context(), asked, run.answering("again", 0))
				if err != nil || string(again.Response) != c.answer || len(questions) != 1 {
					t.Errorf("then: %q, %v, asked %d times", again.Response, err, len(questions))
				}
			})
		})
	}
}

// Nobody is there to ask, so nothing is ever run again, and it does not get lost.
func TestWithoutAReconcilerWhatWasInterruptedStaysUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		interrupted(t, s)
		g := guard(t, s, idempotency.Config{})
		var c counter
		for range 5_000 { // more than a day
			if _, _, err := g.Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrUnknown) {
				t.Fatalf("%v", err)
			}
			time.Sleep(20 * time.Second)
		}
		if c.runs() != 0 || state(t, s) != idempotency.StateUnknown {
			t.Errorf("%d runs, %v", c.runs(), state(t, s))
		}
	})
}

// A retry right after a failure does not have to wait for a pause: there is
// somebody to ask.
func TestAFailureIsLookedIntoByTheNextRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		var questions []idempotency.Record
		g := guard(t, s, idempotency.Config{
			Reconciler: saying(idempotency.Happened(idempotency.Result{Response: []byte("o1001")}), nil, &questions),
		})
		var c counter
		g.Do(t.Context(), asked, c.failing(errors.New("the gateway timed out")))
		r, info, err := g.Do(t.Context(), asked, c.answering("", 0))
		if err != nil || string(r.Response) != "o1001" || !info.Replayed || c.runs() != 1 {
			t.Errorf("%q, %+v, %v, %d runs", r.Response, info, err, c.runs())
		}
		if len(questions) != 1 || questions[0].State != idempotency.StateUnknown || questions[0].Reason != "the run failed: the gateway timed out" {
			t.Errorf("asked: %+v", questions)
		}
	})
}

func TestAReconcilerThatPanicsLeavesTheQuestionOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		interrupted(t, s)
		g := guard(t, s, idempotency.Config{Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
			panic("nil map")
		}})
		var c counter
		if _, panicked, _ := attempt(t, g, c.answering("", 0)); panicked != "nil map" {
			t.Errorf("the panic ended: %v", panicked)
		}
		if state(t, s) != idempotency.StateUnknown || c.runs() != 0 {
			t.Errorf("%v, %d runs", state(t, s), c.runs())
		}
	})
}

// The lease is renewed while the Reconciler is asked; one that takes longer than
// everything may take does not lead to a run.
func TestASlowReconcilerKeepsTheLeaseAndNotForEver(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		runs  int
	}{"several leases": {20 * time.Second, 1}, "too long": {31 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memory()
				interrupted(t, s)
				var run counter
				g := guard(t, s, idempotency.Config{Lease: 3 * time.Second, Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
					time.Sleep(c.takes)
					return idempotency.DidNotHappen(), nil
				}})
				done := make(chan error)
				go func() {
					_, _, err := g.Do(t.Context(), asked, run.answering("o1001", 0))
					done <- err
				}()
				for range 19 {
					time.Sleep(time.Second)
					if _, _, err := g.Do(t.Context(), asked, run.answering("", 0)); !errors.Is(err, idempotency.ErrInProgress) {
						t.Fatalf("meanwhile: %v", err)
					}
				}
				err := <-done
				if run.runs() != c.runs || c.runs == 0 && !errors.Is(err, idempotency.ErrUnknown) {
					t.Errorf("%d runs, %v", run.runs(), err)
				}
			})
		})
	}
}

// A verdict that comes after the lease may have ended is no leave to run: another
// may have taken over, and run.
func TestALateVerdictRunsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &way{Store: memory(), fails: func(_ int, step string) fault {
			if step == "renew" {
				return unsent
			}
			return fine
		}}
		interrupted(t, s)
		g := guard(t, s, idempotency.Config{Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
			time.Sleep(14 * time.Second)
			return idempotency.DidNotHappen(), nil
		}})
		var c counter
		if _, info, err := g.Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrUnknown) || c.runs() != 0 {
			t.Errorf("%+v, %v, %d runs", info, err, c.runs())
		}
	})
}

// A taken-over run that did nothing frees the key only because the attempts
// before it are known to have done nothing either.
func TestNoEffectAfterATakeoverFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		interrupted(t, s)
		var questions []idempotency.Record
		g := guard(t, s, idempotency.Config{Reconciler: saying(idempotency.DidNotHappen(), nil, &questions)})
		var c counter
		g.Do(t.Context(), asked, c.failing(idempotency.NoEffect(errors.New("401"))))
		if state(t, s) != 0 {
			t.Errorf("it is %v", state(t, s))
		}
	})
}
