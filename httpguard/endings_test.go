package httpguard

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

// Marks say what the status does not.
//
// field-reports: 41, 68
func TestFailureAfterTheEffectIsNotRunAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		create http.HandlerFunc
		want   string // what a retry gets
		runs   int64
	}{
		{"500", answers(500), "409 outcome-unknown", 1},
		{"panic", func(http.ResponseWriter, *http.Request) { panic("boom") }, "409 outcome-unknown", 1},
		{"committed, then 500", func(w http.ResponseWriter, r *http.Request) {
			RunOf(r.Context()).Means(Final)
			http.Error(w, "no", http.StatusInternalServerError)
		}, "500", 1},
		{"nothing done, then 500", func(w http.ResponseWriter, r *http.Request) {
			RunOf(r.Context()).Means(NoEffect)
			http.Error(w, "no", http.StatusInternalServerError)
		}, "500", 2},
		{"something done, then 409", func(w http.ResponseWriter, r *http.Request) {
			RunOf(r.Context()).Means(Ambiguous)
			http.Error(w, "no", http.StatusConflict)
		}, "409 outcome-unknown", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newService(t, IdempotentConfig{}, idempotency.Config{})
			s.create = c.create
			recorded(s.handler, keyed("k1", `{"skuId":1}`))
			checkAnswer(t, s.post(), c.want)
			if runs := s.runs.Load(); runs != c.runs {
				t.Errorf("%d runs, want %d", runs, c.runs)
			}
		})
	}
	var none *Run
	none.Means(Final) // where there is no key
}

// Whatever way of answering ends a handler, its record is completed or freed when
// it returns, and a retry never finds it in progress.
//
// field-reports: 68
func TestNoWayOfAnsweringLeavesTheKeyInProgress(t *testing.T) {
	for name, c := range map[string]struct {
		create http.HandlerFunc
		status int // of the first and of the replay
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, 200},
		"status only": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "body"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("204 with a body: %v", err)
			}
		}, 204},
		"error":       {answers(422), 422},
		"redirect":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/orders/o1", http.StatusSeeOther) }, 303},
		"copy":        {func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("copied")) }, 200},
		"early hints": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, 201},
		"twice":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) }, 201},
		"flush": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "way")
		}, 200},
		"hijack": {func(w http.ResponseWriter, _ *http.Request) {
			if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				panic(err)
			}
			w.WriteHeader(202)
		}, 202},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, IdempotentConfig{}, idempotency.Config{})
			s.create = c.create
			server := serve(t, s.handler, false)
			first := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1")
			again := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1")
			if first.status != c.status || again.status != c.status || first.body != again.body ||
				again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%d %q, then %d %q; want %d replayed", first.status, first.body, again.status, again.body, c.status)
			}
		})
	}
}

// field-reports: 68
func TestGoexitLeavesNoKeyInProgress(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	s.create = func(http.ResponseWriter, *http.Request) { runtime.Goexit() }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handler.ServeHTTP(httptest.NewRecorder(), keyed("k1", `{"skuId":1}`))
	}()
	<-ended
	wantProblem(t, s.post(), http.StatusConflict, "outcome-unknown")
}
