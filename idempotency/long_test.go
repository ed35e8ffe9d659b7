package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

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
