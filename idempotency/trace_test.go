package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// diary is a Trace that writes down what it is told.
type diary struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) trace() *idempotency.Trace {
	return &idempotency.Trace{
		Claimed: func(e idempotency.ClaimEvent) {
			d.write("claimed %s %s %v %v", e.Operation, e.Key, e.Outcome, errors.Is(e.Err, idempotency.ErrStoreUnavailable))
		},
		Ran: func(e idempotency.RunEvent) {
			d.write("ran %s %d takeover %v degraded %v for %v stored %v: %v", e.Key, e.Attempt, e.Takeover, e.Degraded, e.Elapsed, e.Stored, e.Err)
		},
		Reconciled: func(e idempotency.ReconcileEvent) {
			d.write("reconciled %s %d %s %v", e.Key, e.Attempt, e.Verdict, e.Err)
		},
		Lost: func(e idempotency.LostEvent) { d.write("lost %s %d", e.Key, e.Attempt) },
		Called: func(e idempotency.CallEvent) {
			d.write("%s in %d tries: %v", e.Step, e.Tries, e.Err)
		},
	}
}

// A diary shows what happened, and no key.
func TestATraceIsToldWhatHappens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		s := &way{Store: memory(), fails: func(call int, _ string) fault {
			if call == 2 { // the completion's first try
				return unheard
			}
			return fine
		}}
		var questions []idempotency.Record
		g := guard(t, s, idempotency.Config{Trace: d.trace(), Reconciler: saying(idempotency.CannotTell("two match"), nil, &questions)})
		var c counter
		g.Do(t.Context(), asked, c.answering("o1001", 2*time.Second))
		g.Do(t.Context(), asked, c.answering("", 0))
		failed := asked
		failed.Key.Value = "req-002"
		g.Do(t.Context(), failed, c.failing(errors.New("500")))
		g.Do(t.Context(), failed, c.failing(errors.New("500")))

		one, two := asked.Key.Digest(), failed.Key.Digest()
		want := []string{
			"claim in 1 tries: <nil>",
			"claimed orders " + one + " CREATED false",
			"complete in 2 tries: <nil>",
			"ran " + one + " 1 takeover false degraded false for 2s stored true: <nil>",
			"claim in 1 tries: <nil>",
			"claimed orders " + one + " REPLAY false",
			"claim in 1 tries: <nil>",
			"claimed orders " + two + " CREATED false",
			"unknown in 1 tries: <nil>",
			"ran " + two + " 1 takeover false degraded false for 0s stored true: 500",
			"claim in 1 tries: <nil>",
			"claimed orders " + two + " TAKEOVER false",
			"reconciled " + two + " 2 cannot_tell <nil>",
			"unknown in 1 tries: <nil>",
		}
		if !slices.Equal(d.lines, want) {
			t.Errorf("%s\n\nwant\n\n%s", strings.Join(d.lines, "\n"), strings.Join(want, "\n"))
		}
		if all := strings.Join(d.lines, "\n"); strings.Contains(all, "req-00") || strings.Contains(all, "u1001") {
			t.Errorf("a key is in it:\n%s", all)
		}
	})
}

func TestATraceIsToldOfTrouble(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		var down atomic.Bool
		s := &way{Store: memory(), fails: func(int, string) fault {
			if down.Load() {
				return unsent
			}
			return fine
		}}
		g := guard(t, s, idempotency.Config{Trace: d.trace()})
		attempt(t, g, func(ctx context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
			down.Store(true)
			<-ctx.Done()
			panic("what panics is not shown")
		})
		r := asked
		r.Key.Value, r.RunDegraded = "req-002", true
		var c counter
		g.Do(t.Context(), r, c.answering("", 0))
		for _, want := range []string{
			"lost " + order.Digest() + " 1",
			"ran " + order.Digest() + " 1 takeover false degraded false for 13.5s stored false: the run panicked, or ended its goroutine",
			"claimed orders " + r.Key.Digest() + " CREATED true",
			"ran " + r.Key.Digest() + " 0 takeover false degraded true for 0s stored false: <nil>",
		} {
			if !slices.Contains(d.lines, want) {
				t.Errorf("%q is not in\n%s", want, strings.Join(d.lines, "\n"))
			}
		}
	})
}

// A hook that panics before anything has run leaves nobody's claim behind.
func TestAClaimWhoseHookPanicsIsGivenUp(t *testing.T) {
	fails := func() { panic("hook") }
	for name, trace := range map[string]*idempotency.Trace{
		"Claimed": {Claimed: func(idempotency.ClaimEvent) { fails() }},
		"Called": {Called: func(e idempotency.CallEvent) {
			if e.Step == "claim" {
				fails()
			}
		}},
	} {
		s := memory()
		func() {
			defer func() { recover() }()
			var c counter
			guard(t, s, idempotency.Config{Trace: trace}).Do(t.Context(), asked, c.answering("", 0))
			t.Errorf("%s: no panic, %d runs", name, c.runs())
		}()
		var c counter
		if _, info, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("", 0)); err != nil || info.Outcome != idempotency.Created {
			t.Errorf("%s: the next finds %v, %v", name, info.Outcome, err)
		}
	}
}
