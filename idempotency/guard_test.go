package idempotency_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

var (
	order = idempotency.Key{Operation: "orders", Principal: "u1001", Value: "req-001"}
	asked = idempotency.Request{Key: order, Fingerprint: "v1:x"}
)

func guard(t testing.TB, s idempotency.Store, c idempotency.Config) *idempotency.Guard {
	t.Helper()
	if c.Clock == nil {
		c.Clock = clock.NewSkewed(1) // as virtual as the bubble, if there is one
	}
	g, err := idempotency.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func memory() *memstore.Store { return memstore.New(clock.NewSkewed(1)) }

// bubble runs f with time of its own.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// counter counts runs.
type counter struct{ n atomic.Int32 }

func (c *counter) runs() int { return int(c.n.Load()) }

// answering is a run that answers text after d.
func (c *counter) answering(text string, d time.Duration) idempotency.Func {
	return func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		c.n.Add(1)
		time.Sleep(d)
		return idempotency.Result{Response: []byte(text)}, nil
	}
}

// failing is a run that fails.
func (c *counter) failing(err error) idempotency.Func {
	return func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		c.n.Add(1)
		return idempotency.Result{}, err
	}
}

// interrupted leaves the record of asked as a process does that has claimed it and
// is gone, with its lease over.
func interrupted(t *testing.T, s idempotency.Store) {
	t.Helper()
	c, err := s.Claim(t.Context(), idempotency.ClaimRequest{
		Key: order, Fingerprint: asked.Fingerprint, Owner: idempotency.NewToken(),
		Lease: 15 * time.Second, Retention: 24 * time.Hour, Holder: "gone/1",
	})
	if err != nil || c.Outcome != idempotency.Created {
		t.Fatalf("%v, %v", c.Outcome, err)
	}
	time.Sleep(15 * time.Second)
}

func state(t *testing.T, s idempotency.Store) idempotency.State {
	t.Helper()
	r, err := s.Get(t.Context(), order)
	if errors.Is(err, idempotency.ErrNotFound) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

func TestARetryGetsTheFirstAnswerAndRunsNothing(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{})
	var c counter
	for i, want := range []idempotency.Info{
		{Outcome: idempotency.Created, Attempt: 1, Ran: true, Stored: true},
		{Outcome: idempotency.Replay, Attempt: 1, Replayed: true, Stored: true},
		{Outcome: idempotency.Replay, Attempt: 1, Replayed: true, Stored: true},
	} {
		r, info, err := g.Do(t.Context(), asked, c.answering("o1001", 0))
		if err != nil || string(r.Response) != "o1001" || info != want {
			t.Errorf("call %d: %q, %+v, %v", i, r.Response, info, err)
		}
	}
	if c.runs() != 1 {
		t.Errorf("it ran %d times", c.runs())
	}
}

// The answer to a misused key is the same whether the first request runs, has
// been interrupted, or is done.
//
// field-reports: 35, 85
func TestAnotherRequestUnderTheKeyIsRefusedInEveryState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		g := guard(t, s, idempotency.Config{})
		var c counter
		misuse := func(when string) {
			t.Helper()
			other := asked
			other.Fingerprint = "v1:y"
			_, info, err := g.Do(t.Context(), other, c.answering("o1002", 0))
			if !errors.Is(err, idempotency.ErrMismatch) || info.Outcome != idempotency.Mismatch || info.Ran {
				t.Errorf("%s: %+v, %v", when, info, err)
			}
		}
		interrupted(t, s)
		misuse("lapsed")
		if _, _, err := g.Do(t.Context(), asked, c.answering("o1001", 0)); !errors.Is(err, idempotency.ErrUnknown) {
			t.Errorf("%v", err)
		}
		misuse("unknown")

		g = guard(t, memory(), idempotency.Config{})
		var running sync.WaitGroup
		running.Go(func() { g.Do(context.WithoutCancel(t.Context()), asked, c.answering("o1001", time.Second)) })
		time.Sleep(100 * time.Millisecond)
		misuse("running")
		running.Wait()
		misuse("done")
		if c.runs() != 1 {
			t.Errorf("%d runs", c.runs())
		}
	})
}

func TestAlternatesMatchWhatAnOlderVersionStored(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{})
	var c counter
	if _, _, err := g.Do(t.Context(), asked, c.answering("o1001", 0)); err != nil {
		t.Fatal(err)
	}
	newer := idempotency.Request{Key: order, Fingerprint: "v2:x", Alternates: []fingerprint.Print{"v1:x"}}
	if r, info, err := g.Do(t.Context(), newer, c.answering("o1002", 0)); err != nil || !info.Replayed || string(r.Response) != "o1001" {
		t.Errorf("%q, %+v, %v", r.Response, info, err)
	}
}

func TestOfManyCallsAtOnceOneRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		var c counter
		var busy, ran atomic.Int32
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				// Each is a process of its own.
				_, info, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("o1001", time.Second))
				switch {
				case errors.Is(err, idempotency.ErrInProgress):
					busy.Add(1)
				case err == nil && info.Ran:
					ran.Add(1)
				}
			})
		}
		all.Wait()
		if c.runs() != 1 || ran.Load() != 1 || busy.Load() != 99 {
			t.Errorf("%d runs, %d ran, %d in progress", c.runs(), ran.Load(), busy.Load())
		}
	})
}

// field-reports: 31
func TestALongRunKeepsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		g := guard(t, s, idempotency.Config{Lease: time.Second})
		var c counter
		var running sync.WaitGroup
		running.Go(func() {
			if _, info, err := g.Do(t.Context(), asked, c.answering("o1001", 25*time.Second)); err != nil || !info.Stored {
				t.Errorf("%+v, %v", info, err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		for range 240 {
			if _, _, err := g.Do(t.Context(), asked, c.answering("o1002", 0)); !errors.Is(err, idempotency.ErrInProgress) {
				t.Fatalf("while it runs: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		running.Wait()
		if _, info, err := g.Do(t.Context(), asked, c.answering("o1002", 0)); err != nil || !info.Replayed {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestInProgressSaysWhenToComeBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := guard(t, memory(), idempotency.Config{Lease: 9 * time.Second})
		var c counter
		began := time.Now()
		var running sync.WaitGroup
		running.Go(func() { g.Do(t.Context(), asked, c.answering("o1001", 12*time.Second)) })
		for _, step := range []struct{ at, want time.Duration }{
			{100 * time.Millisecond, time.Second}, // never less
			{2 * time.Second, 2 * time.Second},    // as long as it has taken so far
			{5 * time.Second, 5 * time.Second},
			{8900 * time.Millisecond, 6100 * time.Millisecond}, // renewed at 6 s, and gone by 15 s if it dies now
		} {
			time.Sleep(time.Until(began.Add(step.at)))
			_, info, err := g.Do(t.Context(), asked, c.answering("o1002", 0))
			var busy *idempotency.InProgressError
			if !errors.As(err, &busy) || busy.RetryAfter != step.want || busy.Age != step.at || busy.Attempt != 1 || info.Outcome != idempotency.InProgress {
				t.Errorf("at %v: %v, want %v; %+v", step.at, err, step.want, info)
			}
		}
		running.Wait()
	})
}

func TestARecordIsKeptForADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := guard(t, memory(), idempotency.Config{})
		var c counter
		for _, step := range []struct {
			wait time.Duration
			runs int
		}{{0, 1}, {24*time.Hour - time.Second, 1}, {time.Second, 2}} { // from its completion
			time.Sleep(step.wait)
			if _, _, err := g.Do(t.Context(), asked, c.answering("o1001", 29*time.Second)); err != nil || c.runs() != step.runs {
				t.Errorf("%v later: %d runs, %v, want %d", step.wait, c.runs(), err, step.runs)
			}
		}
	})
}

// The client hangs up in the middle: what runs goes on, and its result is stored.
//
// field-reports: 39
func TestTheEndOfACallersContextChangesNothingOnceItRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := guard(t, memory(), idempotency.Config{})
		ctx, hangUp := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer hangUp()
		effects := 0
		fn := func(run context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
			time.Sleep(100 * time.Millisecond)
			effects++
			time.Sleep(400 * time.Millisecond)
			return idempotency.Result{Response: []byte("o1001")}, run.Err()
		}
		if _, info, err := g.Do(ctx, asked, fn); err != nil || !info.Stored || ctx.Err() == nil {
			t.Errorf("%+v, %v", info, err)
		}
		time.Sleep(500 * time.Millisecond)
		r, info, err := g.Do(t.Context(), asked, fn)
		if err != nil || !info.Replayed || string(r.Response) != "o1001" || effects != 1 {
			t.Errorf("%q, %+v, %v, %d effects", r.Response, info, err, effects)
		}
	})
}

func TestACallWhoseContextHasEndedClaimsNothing(t *testing.T) {
	s := memory()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client is gone")
	cancel(gone)
	var c counter
	if _, _, err := guard(t, s, idempotency.Config{}).Do(ctx, asked, c.answering("", 0)); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	if state(t, s) != 0 || c.runs() != 0 {
		t.Errorf("%v, %d runs", state(t, s), c.runs())
	}
}

func TestARunThatTakesTooLongIsEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		g := guard(t, s, idempotency.Config{Lease: 3 * time.Second, ExecTimeout: 10 * time.Second})
		began := time.Now()
		_, info, err := g.Do(t.Context(), asked, func(ctx context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
			<-ctx.Done()
			return idempotency.Result{}, context.Cause(ctx)
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if !info.Stored || state(t, s) != idempotency.StateUnknown {
			t.Errorf("%+v, %v", info, state(t, s))
		}
	})
}

// One that does not listen keeps its key for a lease more and no longer.
func TestARunThatHangsIsNotRenewedForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		g := guard(t, s, idempotency.Config{Lease: 3 * time.Second, ExecTimeout: 10 * time.Second})
		var c counter
		var hung sync.WaitGroup
		hung.Go(func() {
			_, info, err := g.Do(t.Context(), asked, c.answering("late", time.Minute))
			if err != nil || info.Stored || !errors.Is(info.StoreErr, idempotency.ErrLeaseLost) {
				t.Errorf("the one that hung: %+v, %v", info, err)
			}
		})
		time.Sleep(14 * time.Second)
		happened := guard(t, s, idempotency.Config{Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
			return idempotency.Happened(idempotency.Result{Response: []byte("from the table")}), nil
		}})
		if r, info, err := happened.Do(t.Context(), asked, c.answering("", 0)); err != nil || info.Outcome != idempotency.Takeover || string(r.Response) != "from the table" {
			t.Errorf("%q, %+v, %v", r.Response, info, err)
		}
		hung.Wait()
		if r, info, err := g.Do(t.Context(), asked, c.answering("", 0)); err != nil || !info.Replayed || string(r.Response) != "from the table" {
			t.Errorf("%q, %+v, %v", r.Response, info, err)
		}
	})
}

func TestDoLeavesNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		g := guard(t, s, idempotency.Config{ExecTimeout: time.Minute})
		var c counter
		before := runtime.NumGoroutine()
		for name, fn := range map[string]idempotency.Func{
			"answers":   c.answering("o1001", time.Second),
			"fails":     c.failing(errors.New("500")),
			"no effect": c.failing(idempotency.NoEffect(errors.New("401"))),
			"long":      c.answering("o1001", 2*time.Minute),
		} {
			r := asked
			r.Key.Value = name
			for range 2 { // the second finds what the first has left
				g.Do(t.Context(), r, fn)
				synctest.Wait()
				if n := runtime.NumGoroutine(); n != before {
					t.Errorf("%s: %d goroutines, and %d before", name, n, before)
				}
			}
		}
	})
}
