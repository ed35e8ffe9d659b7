package httpguard

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

// decisions is what SubmitOnce has decided, by decision.
type decisions [Abandoned + 1]atomic.Int64

func (d *decisions) count(_ *http.Request, decision Decision, _ error) { d[decision].Add(1) }

func TestOnlyHeldByAnotherIs429(t *testing.T) {
	for _, err := range []error{
		redlock.ErrNoQuorum, redlock.ErrTooSlow, redlock.ErrClosed, redlock.ErrInvalid, errors.New("some other"),
		context.DeadlineExceeded,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			lock, o := newMemoryLock(), newOrder()
			lock.fails = err
			close(o.end)
			var told []error
			var decided decisions
			cfg := SubmitConfig{Decided: func(r *http.Request, d Decision, err error) {
				decided.count(r, d, err)
				told = append(told, err)
			}}
			got := record(submitOnceOn(t, lock, cfg, o), request("POST", "/orders", "{}"))
			if got.status != http.StatusCreated || decided[Bypassed].Load() != 1 {
				t.Errorf("%d, %d bypassed; want it handled and counted", got.status, decided[Bypassed].Load())
			}
			cfg.RequireLock = true
			got = record(submitOnceOn(t, lock, cfg, o), request("POST", "/orders", "{}"))
			wantProblem(t, got, http.StatusServiceUnavailable, "guard-unavailable")
			if got.header.Get("Retry-After") == "" || decided[Unavailable].Load() != 1 {
				t.Errorf("Retry-After %q, %d unavailable", got.header.Get("Retry-After"), decided[Unavailable].Load())
			}
			if len(told) != 2 || !errors.Is(told[0], err) || !errors.Is(told[1], err) {
				t.Errorf("Decided was told %v", told)
			}
			if runs := o.runs.Load(); runs != 1 {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// A browser gives up the first request of a double click. If that ran without
// the lock, both would run.
func TestClientThatHasGoneDoesNotGetPastTheGuard(t *testing.T) {
	var decided decisions
	o := newOrder()
	close(o.end)
	h := submitOnceOn(t, newMemoryLock(), SubmitConfig{Decided: decided.count}, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	record(h, request("POST", "/orders", "{}").WithContext(ctx))
	if o.runs.Load() != 0 || decided[Abandoned].Load() != 1 {
		t.Errorf("%d runs, %d abandoned", o.runs.Load(), decided[Abandoned].Load())
	}
}

func TestRequestsWithAKeyAreLeftToIdempotent(t *testing.T) {
	lock, o := newMemoryLock(), newOrder()
	lock.fails = redlock.ErrHeld
	close(o.end)
	keyed := request("POST", "/orders", "{}")
	keyed.Header.Set("Idempotency-Key", "k1")
	if got := record(submitOnceOn(t, lock, SubmitConfig{}, o), keyed); got.status != http.StatusCreated {
		t.Errorf("%d, want it to pass", got.status)
	}
	if got := record(submitOnceOn(t, lock, SubmitConfig{Keyed: true}, o), keyed); got.status != http.StatusTooManyRequests {
		t.Errorf("with Keyed: %d", got.status)
	}
}

func TestRequestsThatChangeNothingPass(t *testing.T) {
	lock, o := newMemoryLock(), newOrder()
	lock.fails = redlock.ErrHeld
	close(o.end)
	h := submitOnceOn(t, lock, SubmitConfig{}, o)
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE"} {
		if got := record(h, request(method, "/orders", "")); got.status != http.StatusCreated {
			t.Errorf("%s: %d", method, got.status)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "LOCK"} {
		if got := record(h, request(method, "/orders", "")); got.status != http.StatusTooManyRequests {
			t.Errorf("%s: %d", method, got.status)
		}
	}
}

func TestNobodyIsNoPrincipal(t *testing.T) {
	o := newOrder()
	close(o.end)
	h := submitOnceOn(t, newMemoryLock(), SubmitConfig{Principal: func(*http.Request) string { return "" }}, o)
	wantProblem(t, record(h, request("POST", "/orders", "{}")), http.StatusForbidden, "principal-missing")
	if o.runs.Load() != 0 {
		t.Error("the handler ran")
	}
}

func TestADecidedThatPanicsLeavesNoLock(t *testing.T) {
	lock := newMemoryLock()
	lock.released = make(chan string, 1)
	h := submitOnceOn(t, lock, SubmitConfig{Decided: func(*http.Request, Decision, error) { panic("hook") }}, newOrder())
	if _, panicked := recorded(h, request("POST", "/orders", "{}")); panicked != "hook" {
		t.Fatalf("panicked with %v", panicked)
	}
	await(t, lock.released)
}
