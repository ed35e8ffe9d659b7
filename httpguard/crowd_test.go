package httpguard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
)

// field-reports: 39
func TestClientThatHangsUpStopsNothing(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan struct{}) // the server has seen that the client has gone
		stored := make(chan struct{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			<-gone
			if err := r.Context().Err(); err != nil {
				t.Errorf("the handler's context: %v", err)
			}
			created(w, r)
		}
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stop := context.AfterFunc(r.Context(), func() { close(gone) })
			s.handler.ServeHTTP(w, r)
			if !stop() && s.store.called("complete") == 1 {
				close(stored)
			}
		}), http2)
		if _, err := trySend(ctx, server, "POST", "/orders", strings.NewReader("{}"), "Idempotency-Key", "k1"); !errors.Is(err, context.Canceled) {
			t.Fatalf("the client got %v", err)
		}
		await(t, stored)
		isOrder(t, send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1"), true)
		if runs := s.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// All have arrived, and wait for the handler or have been answered, before it ends.
func TestAHundredAtOnceRunOnce(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		const n = 100
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		end := make(chan struct{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			<-end
			created(w, r)
		}
		server := serve(t, s.handler, http2)
		answers := make(chan answer, n)
		var all sync.WaitGroup
		for range n {
			all.Go(func() { answers <- send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1") })
		}
		for range n - 1 {
			a := await(t, answers)
			wantProblem(t, a, http.StatusConflict, "in-progress")
			if after := a.header.Get("Retry-After"); len(after) != 1 || after < "1" {
				t.Errorf("Retry-After %q", after)
			}
		}
		var others sync.WaitGroup
		other := func() {
			a := send(t, server, "POST", "/orders", "[]", "Idempotency-Key", "k1")
			wantProblem(t, a, http.StatusUnprocessableEntity, "mismatch")
		}
		for range n {
			others.Go(other) // while the first is running
		}
		others.Wait()
		close(end)
		all.Wait()
		isOrder(t, await(t, answers), false)
		for range n {
			others.Go(other)
			all.Go(func() { answers <- send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1") })
		}
		all.Wait()
		others.Wait()
		for range n {
			isOrder(t, await(t, answers), true)
		}
		if runs := s.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// An hour more or less, from the start or all at once: leases go by the store's clock.
func TestClientsClockDoesNotMatter(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		wrong := clock.NewSkewed(1)
		wrong.Step(by)
		_, other := s.instance(IdempotentConfig{}, idempotency.Config{}, wrong)
		begun, end := make(chan struct{}), make(chan struct{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-end
			created(w, r)
		}
		first := make(chan answer)
		go func() { first <- s.post() }()
		await(t, begun)
		wantProblem(t, record(other, keyed("k1", `{"skuId":1}`)), http.StatusConflict, "in-progress")
		wrong.Step(by)
		r := keyed("k1", `{"skuId":1}`)
		r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		wantProblem(t, record(other, r), http.StatusConflict, "in-progress")
		close(end)
		isOrder(t, await(t, first), false)
		isOrder(t, record(other, keyed("k1", `{"skuId":1}`)), true)
		if runs := s.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	}
}
