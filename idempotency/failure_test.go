package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// attempt calls Do in a goroutine of its own, as a server does that recovers from
// panics, and returns what it panicked with.
func attempt(t *testing.T, g *idempotency.Guard, fn idempotency.Func) (info idempotency.Info, panicked any, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		_, info, err = g.Do(t.Context(), asked, fn)
	}()
	<-done
	return info, panicked, err
}

// However a run ends that has not said that it did nothing, its key is not free.
//
// field-reports: 41
func TestAFailureNeverFreesTheKey(t *testing.T) {
	failure := errors.New("500")
	for name, fail := range map[string]func() error{
		"an error":          func() error { return failure },
		"a context's error": func() error { return context.Canceled },
		"a panic":           func() error { panic("nil map") },
		"a panic of nil":    func() error { panic(nil) },
		"an end":            func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memory()
				g := guard(t, s, idempotency.Config{})
				effects := 0
				fn := func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
					effects++
					return idempotency.Result{}, fail()
				}
				info, panicked, err := attempt(t, g, fn)
				switch {
				case name == "a panic" && panicked != "nil map":
					t.Errorf("the panic ended: %v", panicked)
				case name == "an error" && (err != failure || !info.Stored || !info.Ran):
					t.Errorf("%+v, %v", info, err)
				}
				if got := state(t, s); got != idempotency.StateUnknown {
					t.Errorf("it is %v", got)
				}
				for range 10 {
					info, _, err := attempt(t, g, fn)
					var unknown *idempotency.UnknownError
					if !errors.As(err, &unknown) || unknown.RetryAfter <= 0 || unknown.RetryAfter > 30*time.Second || info.Ran {
						t.Errorf("retry: %+v, %v", info, err)
					}
					time.Sleep(7 * time.Second) // within the pause, and past it
				}
				if effects != 1 {
					t.Errorf("%d effects", effects)
				}
			})
		})
	}
}

func TestWhatHadNoEffectFreesTheKey(t *testing.T) {
	s := memory()
	g := guard(t, s, idempotency.Config{})
	var c counter
	unauthorized := errors.New("401")
	_, info, err := g.Do(t.Context(), asked, c.failing(idempotency.NoEffect(unauthorized)))
	if !errors.Is(err, unauthorized) || err.Error() != "401" || !info.Stored || state(t, s) != 0 {
		t.Errorf("%+v, %v, %v", info, err, state(t, s))
	}
	if _, info, err := g.Do(t.Context(), asked, c.answering("o1001", 0)); err != nil || !info.Ran || info.Attempt != 1 {
		t.Errorf("retry: %+v, %v", info, err)
	}
	if idempotency.NoEffect(nil) != nil {
		t.Error("NoEffect(nil) is an error")
	}
}

// A refusal for good is a result.
func TestARefusalIsReplayed(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{})
	var c counter
	for range 3 {
		r, _, err := g.Do(t.Context(), asked, c.answering("409 out of stock", 0))
		if err != nil || string(r.Response) != "409 out of stock" {
			t.Errorf("%q, %v", r.Response, err)
		}
	}
	if c.runs() != 1 {
		t.Errorf("%d runs", c.runs())
	}
}

func TestATombstoneIsNotReplayedAndNotRunAgain(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{MaxResponse: 100})
	for name, c := range map[string]struct {
		result idempotency.Result
		left   string
	}{
		"said so":   {idempotency.Result{Response: []byte("/orders/o1001"), Tombstone: true}, "/orders/o1001"},
		"too large": {idempotency.Result{Response: bytes.Repeat([]byte("x"), 101)}, ""},
	} {
		r, runs := asked, 0
		r.Key.Value = name
		fn := func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
			runs++
			return c.result, nil
		}
		first, info, err := g.Do(t.Context(), r, fn)
		if err != nil || !bytes.Equal(first.Response, c.result.Response) || !info.Stored {
			t.Errorf("%s: the first gets %d bytes, %+v, %v", name, len(first.Response), info, err)
		}
		again, info, err := g.Do(t.Context(), r, fn)
		if !errors.Is(err, idempotency.ErrNotReplayable) || string(again.Response) != c.left || !again.Tombstone || info.Replayed || runs != 1 {
			t.Errorf("%s: the second gets %q, %+v, %v, after %d runs", name, again.Response, info, err, runs)
		}
	}
	whole := asked
	whole.Key.Value = "just fits"
	for range 2 {
		r, _, err := g.Do(t.Context(), whole, func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
			return idempotency.Result{Response: bytes.Repeat([]byte("x"), 100)}, nil
		})
		if err != nil || len(r.Response) != 100 {
			t.Errorf("%d bytes, %v", len(r.Response), err)
		}
	}
}

// What is shown to people about a failure is short, and text that any store keeps.
func TestReasonsAreShortText(t *testing.T) {
	s := memory()
	g := guard(t, s, idempotency.Config{Holder: "host \xff"})
	var c counter
	g.Do(t.Context(), asked, c.failing(errors.New("bad \xff and \x00 and "+strings.Repeat("é", 500))))
	r, err := s.Get(t.Context(), order)
	if err != nil || !strings.HasPrefix(r.Reason, "the run failed: bad ? and ? and éé") || len(r.Reason) > 200 || len(r.Reason) < 199 {
		t.Errorf("%d bytes: %q, %v", len(r.Reason), r.Reason, err)
	}
	if r.Holder != "host ?" {
		t.Errorf("its holder is %q", r.Holder)
	}
}
