package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func TestLookupReadsWhatIsStored(t *testing.T) {
	s := memory()
	g := guard(t, s, idempotency.Config{Seal: seal(t, sealKey("k"))})
	if _, _, err := g.Lookup(t.Context(), order); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	var c counter
	g.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		if record, r, err := g.Lookup(ctx, order); err != nil || record.State != idempotency.StateInProgress || r.Response != nil {
			t.Errorf("running: %+v, %+v, %v", record, r, err)
		}
		return c.answering("o1001", 0)(ctx, ex)
	})
	if record, r, err := g.Lookup(t.Context(), order); err != nil || record.State != idempotency.StateSuccess || string(r.Response) != "o1001" {
		t.Errorf("done: %+v, %q, %v", record, r.Response, err)
	}
	blind := guard(t, s, idempotency.Config{})
	if record, _, err := blind.Lookup(t.Context(), order); !errors.Is(err, idempotency.ErrNotReplayable) || record.State != idempotency.StateSuccess {
		t.Errorf("without its key: %+v, %v", record, err)
	}
}

func TestAnOperatorResolvesWhatIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		decision idempotency.Verdict
		answer   string
		runs     int
	}{
		"it happened": {idempotency.Happened(idempotency.Result{Response: []byte("by hand")}), "by hand", 1},
		"it did not":  {idempotency.DidNotHappen(), "o1001", 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, memory(), idempotency.Config{Seal: seal(t, sealKey("k"))})
			var run counter
			if err := g.Resolve(t.Context(), order, 1, c.decision); !errors.Is(err, idempotency.ErrNotUnknown) {
				t.Errorf("without a record: %v", err)
			}
			g.Do(t.Context(), asked, run.failing(errors.New("500")))
			if err := g.Resolve(t.Context(), order, 2, c.decision); !errors.Is(err, idempotency.ErrNotUnknown) {
				t.Errorf("another attempt: %v", err)
			}
			if err := g.Resolve(t.Context(), order, 1, idempotency.CannotTell("?")); !errors.Is(err, idempotency.ErrInvalid) {
				t.Errorf("no decision: %v", err)
			}
			if err := g.Resolve(t.Context(), order, 1, c.decision); err != nil {
				t.Fatal(err)
			}
			if r, _, err := g.Do(t.Context(), asked, run.answering("o1001", 0)); err != nil || string(r.Response) != c.answer || run.runs() != c.runs {
				t.Errorf("%q, %v, %d runs", r.Response, err, run.runs())
			}
			if err := g.Resolve(t.Context(), order, 1, c.decision); !errors.Is(err, idempotency.ErrNotUnknown) {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

func TestASweepSettlesWhatNoRetryHasComeFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memory()
		verdicts := map[string]idempotency.Verdict{
			"happened":      idempotency.Happened(idempotency.Result{Response: []byte("o1001")}),
			"tombstone":     idempotency.Happened(idempotency.Result{Tombstone: true}),
			"did not":       idempotency.DidNotHappen(),
			"cannot tell":   idempotency.CannotTell("two match"),
			"cannot either": {},
		}
		config := idempotency.Config{Reconciler: func(_ context.Context, r idempotency.Record) (idempotency.Verdict, error) {
			return verdicts[r.Key.Value], nil
		}}
		claim := func(name string, lease time.Duration) {
			_, err := s.Claim(t.Context(), idempotency.ClaimRequest{
				Key: idempotency.Key{Operation: "orders", Principal: "u", Value: name}, Fingerprint: "v1:x",
				Owner: "dead", Lease: lease, Retention: 24 * time.Hour,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name := range verdicts {
			claim(name, time.Minute)
		}
		claim("running", time.Hour)
		g := guard(t, s, config)
		if report, err := g.Sweep(t.Context(), 100); err != nil || report != (idempotency.SweepReport{}) {
			t.Errorf("while all run: %+v, %v", report, err)
		}
		time.Sleep(2 * time.Minute)
		if report, err := g.Sweep(t.Context(), 2); err != nil || report.Repaired+report.Freed+report.Unknown != 2 {
			t.Errorf("two of them: %+v, %v", report, err)
		}
		g.Sweep(t.Context(), 100)
		after := func(name string) idempotency.State {
			r, _ := s.Get(t.Context(), idempotency.Key{Operation: "orders", Principal: "u", Value: name})
			return r.State
		}
		for name, want := range map[string]idempotency.State{
			"happened": idempotency.StateSuccess, "tombstone": idempotency.StateSuccess, "did not": 0,
			"cannot tell": idempotency.StateUnknown, "cannot either": idempotency.StateUnknown, "running": idempotency.StateInProgress,
		} {
			if got := after(name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		time.Sleep(31 * time.Second)
		if report, err := g.Sweep(t.Context(), 100); err != nil || report != (idempotency.SweepReport{Unknown: 2}) {
			t.Errorf("after the pause: %+v, %v", report, err)
		}
		if report, err := g.Sweep(t.Context(), 100); err != nil || report != (idempotency.SweepReport{}) {
			t.Errorf("within the pause: %+v, %v", report, err)
		}
	})
}

// bare is a store that can do only what it must.
type bare struct{ idempotency.Store }

func TestWhatAStoreCannotDoIsSaid(t *testing.T) {
	var questions []idempotency.Record
	ask := idempotency.Config{Reconciler: saying(idempotency.DidNotHappen(), nil, &questions)}
	for name, c := range map[string]struct {
		store  idempotency.Store
		config idempotency.Config
		limit  int
	}{
		"it cannot list":    {bare{memory()}, ask, 1},
		"there is nobody":   {memory(), idempotency.Config{}, 1},
		"there is no limit": {memory(), ask, 0},
	} {
		if _, err := guard(t, c.store, c.config).Sweep(t.Context(), c.limit); !errors.Is(err, idempotency.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := guard(t, bare{memory()}, ask).Resolve(t.Context(), order, 1, idempotency.DidNotHappen()); !errors.Is(err, idempotency.ErrInvalid) {
		t.Errorf("resolve: %v", err)
	}
}

func TestASweepEndsWhenTheStoreDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory()
		interrupted(t, m)
		s := struct {
			*way
			idempotency.Lister
		}{&way{Store: m, fails: func(int, string) fault { return unsent }}, m}
		var questions []idempotency.Record
		g := guard(t, s, idempotency.Config{Reconciler: saying(idempotency.DidNotHappen(), nil, &questions)})
		if report, err := g.Sweep(t.Context(), 100); !errors.Is(err, idempotency.ErrStoreUnavailable) || report != (idempotency.SweepReport{}) {
			t.Errorf("claims fail: %+v, %v", report, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Sweep(ended, 100); !errors.Is(err, context.Canceled) {
			t.Errorf("its context has ended: %v", err)
		}
		if len(questions) > 0 {
			t.Errorf("asked: %+v", questions)
		}
	})
}
