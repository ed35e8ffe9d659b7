package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// table is the place whose word counts: what has really happened.
type table struct{ orders int }

// truthful is a Reconciler that looks into the table.
func (b *table) truthful(context.Context, idempotency.Record) (idempotency.Verdict, error) {
	if b.orders > 0 {
		return idempotency.Happened(idempotency.Result{Response: []byte("o1001")}), nil
	}
	return idempotency.DidNotHappen(), nil
}

// endings are the ways in which a run ends: with or without its effect before.
var endings = map[string]func(b *table) (idempotency.Result, error){
	"done": func(b *table) (idempotency.Result, error) {
		b.orders++
		return idempotency.Result{Response: []byte("o1001")}, nil
	},
	"failed after its effect": func(b *table) (idempotency.Result, error) {
		b.orders++
		return idempotency.Result{}, errors.New("500")
	},
	"failed before its effect": func(*table) (idempotency.Result, error) {
		return idempotency.Result{}, errors.New("500")
	},
	"panicked after its effect": func(b *table) (idempotency.Result, error) {
		b.orders++
		panic("500")
	},
	"had no effect": func(*table) (idempotency.Result, error) {
		return idempotency.Result{}, idempotency.NoEffect(errors.New("401"))
	},
}

// The store fails at one call of a request, or from one call on, in every way
// there is, while the run ends in every way there is. Then it is well again and
// retries come.
func TestNothingRunsTwiceWhicheverCallTheStoreFailsAt(t *testing.T) {
	const calls = 8 // more than a request makes
	for ending, end := range endings {
		for _, f := range []fault{unsent, unheard, hanging, hangingAfter} {
			for _, onwards := range []bool{false, true} {
				for at := 1; at <= calls; at++ {
					for _, asks := range []bool{true, false} {
						name := fmt.Sprintf("%s, %v at call %d, onwards %v, asks %v", ending, f, at, onwards, asks)
						bubble(t, func(t *testing.T) { failing(t, name, end, f, at, onwards, asks) })
					}
				}
			}
		}
	}
}

func failing(t *testing.T, name string, end func(*table) (idempotency.Result, error), f fault, at int, onwards, asks bool) {
	s := memory()
	var b table
	config := idempotency.Config{}
	if asks {
		config.Reconciler = b.truthful
	}
	broken := &way{Store: s, fails: func(call int, _ string) fault {
		if call == at || onwards && call > at {
			return f
		}
		return fine
	}}
	first := func(ctx context.Context, _ *idempotency.Execution) (idempotency.Result, error) {
		time.Sleep(6 * time.Second) // one renewal
		return end(&b)
	}
	info, panicked, err := attempt(t, guard(t, broken, config), first)
	if panicked == nil && (err == nil && !info.Ran || info.Stored == (info.StoreErr != nil)) {
		t.Errorf("%s: %+v, %v", name, info, err)
	}
	well := guard(t, s, config)
	var last error
	for range 6 { // for longer than leases and pauses last
		var r idempotency.Result
		r, _, last = well.Do(t.Context(), asked, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
			b.orders++
			return idempotency.Result{Response: []byte("o1001")}, nil
		})
		if last == nil && string(r.Response) != "o1001" {
			t.Errorf("%s: %q", name, r.Response)
		}
		time.Sleep(16 * time.Second)
	}
	if b.orders > 1 {
		t.Errorf("%s: %d orders", name, b.orders)
	}
	switch {
	case asks && (last != nil || b.orders != 1):
		t.Errorf("%s: %d orders, and at last %v", name, b.orders, last)
	case last != nil && !errors.Is(last, idempotency.ErrUnknown):
		t.Errorf("%s: at last %v", name, last)
	}
}

// The process dies at each call instead, and the store lives.
func TestNothingRunsTwiceWhereverAProcessDies(t *testing.T) {
	for ending, end := range endings {
		for at := 1; at <= 5; at++ {
			for _, after := range []bool{false, true} {
				name := fmt.Sprintf("%s, dead at call %d, after it %v", ending, at, after)
				bubble(t, func(t *testing.T) {
					f := unsent
					if after {
						f = unheard
					}
					// Who is dead does nothing more, in this world or with the store.
					var dead atomic.Bool
					end := func(b *table) (idempotency.Result, error) {
						if dead.Load() {
							panic("dead")
						}
						return end(b)
					}
					failingFrom := func(call int, _ string) fault {
						if call >= at {
							dead.Store(true)
						}
						if call == at {
							return f
						}
						if call > at {
							return unsent
						}
						return fine
					}
					dying(t, name, end, failingFrom)
				})
			}
		}
	}
}

func dying(t *testing.T, name string, end func(*table) (idempotency.Result, error), fails func(int, string) fault) {
	s := memory()
	var b table
	attempt(t, guard(t, &way{Store: s, fails: fails}, idempotency.Config{Reconciler: b.truthful}),
		func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
			time.Sleep(6 * time.Second)
			return end(&b)
		})
	time.Sleep(time.Minute)
	g := guard(t, s, idempotency.Config{Reconciler: b.truthful})
	r, info, err := g.Do(t.Context(), asked, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		b.orders++
		return idempotency.Result{Response: []byte("o1001")}, nil
	})
	if err != nil || string(r.Response) != "o1001" || b.orders != 1 {
		t.Errorf("%s: %q, %+v, %v, %d orders", name, r.Response, info, err, b.orders)
	}
}

// field-reports: 70
func TestAStoreThatGivesNoAnswerStopsTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &way{Store: memory(), fails: func(int, string) fault { return hanging }}
		begun := time.Now()
		var c counter
		_, info, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("", 0))
		if !errors.Is(err, idempotency.ErrStoreUnavailable) || info.Ran || info.Stored || c.runs() != 0 {
			t.Errorf("%+v, %v, %d runs", info, err, c.runs())
		}
		if took := time.Since(begun); took > 2500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// field-reports: 70
func TestAClaimThatWasHeardAndNotAnsweredBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory()
		s := &way{Store: m, fails: func(_ int, step string) fault {
			if step == "claim" {
				return unheard
			}
			return fine
		}}
		var c counter
		if _, _, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrStoreUnavailable) {
			t.Errorf("%v", err)
		}
		if _, info, err := guard(t, m, idempotency.Config{}).Do(t.Context(), asked, c.answering("o1001", 0)); err != nil || !info.Ran || c.runs() != 1 {
			t.Errorf("right after it: %+v, %v, %d runs", info, err, c.runs())
		}

		// What it may have taken over is not freed by giving it up.
		m = memory()
		s.Store = m
		interrupted(t, m)
		if _, _, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrStoreUnavailable) {
			t.Errorf("%v", err)
		}
		if _, info, err := guard(t, m, idempotency.Config{}).Do(t.Context(), asked, c.answering("", 0)); !errors.Is(err, idempotency.ErrUnknown) || info.Outcome != idempotency.Takeover || c.runs() != 1 {
			t.Errorf("right after that: %+v, %v, %d runs", info, err, c.runs())
		}
	})
}

// An answer that does not come uses up only half of the patience.
//
// field-reports: 70
func TestASilentTryIsNotTheLast(t *testing.T) {
	for _, f := range []fault{hanging, hangingAfter} {
		bubble(t, func(t *testing.T) {
			s := &way{Store: memory(), fails: func(call int, _ string) fault {
				if call%3 != 0 { // two of three tries
					return f
				}
				return fine
			}}
			var c counter
			begun := time.Now()
			_, info, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, c.answering("o1001", 0))
			if err != nil || !info.Stored || c.runs() != 1 || time.Since(begun) > 4*time.Second {
				t.Errorf("%v: %+v, %v, after %v", f, info, err, time.Since(begun))
			}
		})
	}
}

// A database that guards its effects too may be let decide.
func TestADegradedRunStoresWhatItCan(t *testing.T) {
	for name, c := range map[string]struct {
		fails  func(call int, step string) fault
		stored bool
	}{
		"the store stays away": {func(int, string) fault { return unsent }, false},
		"it comes back":        {func(call int, _ string) fault { return []fault{fine, unsent}[max(0, min(1, 4-call))] }, true},
		"it had heard":         {func(call int, _ string) fault { return []fault{fine, unheard}[max(0, min(1, 4-call))] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memory()
				g := guard(t, &way{Store: s, fails: c.fails}, idempotency.Config{})
				r := asked
				r.RunDegraded = true
				var seen idempotency.Execution
				result, info, err := g.Do(t.Context(), r, func(_ context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
					seen = *ex
					return idempotency.Result{Response: []byte("o1001")}, nil
				})
				if err != nil || string(result.Response) != "o1001" || !info.Degraded || !info.Ran || info.Attempt != 0 || info.Stored != c.stored {
					t.Errorf("%q, %+v, %v", result.Response, info, err)
				}
				if !seen.Degraded || seen.Takeover {
					t.Errorf("the run saw %+v", seen)
				}
				if c.stored != (state(t, s) == idempotency.StateSuccess) {
					t.Errorf("stored: %v, and it is %v", c.stored, state(t, s))
				}
			})
		})
	}
}

// Nobody is run degraded because the request itself was given up.
func TestARequestThatIsGivenUpIsNotRunDegraded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &way{Store: memory(), fails: func(int, string) fault { return hanging }}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r := asked
		r.RunDegraded = true
		var c counter
		if _, info, err := guard(t, s, idempotency.Config{}).Do(ctx, r, c.answering("", 0)); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, idempotency.ErrStoreUnavailable) || c.runs() != 0 {
			t.Errorf("%+v, %v, %d runs", info, err, c.runs())
		}
	})
}
