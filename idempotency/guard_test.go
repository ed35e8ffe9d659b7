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
