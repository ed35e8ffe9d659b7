package httpguard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// situation is a row of the table in docs/http.md.
type situation struct {
	row     int
	name    string
	cfg     IdempotentConfig
	guard   idempotency.Config
	meet    func(s *service) answer // brings it about; the answer is the one the row is about
	draft   string                  // status, and a problem's name, order or replay
	accept  string                  // the same with Accepted; empty if it is no other
	headers []string                // must be there: "Name" or "Name: value"
	runs    int64                   // of the handler
}

const (
	order201  = "201 order"  // of this run
	replay201 = "201 replay" // of an earlier one
	docsLink  = "Link"
	statusURL = "Location: /orders/by-key/k1"
)

func byKey(_ *http.Request, k idempotency.Key) string { return "/orders/by-key/" + k.Value }

func situations() []situation {
	return []situation{
		{row: 1, name: "first request", meet: (*service).post, draft: order201, runs: 1},
		{row: 2, name: "done", meet: func(s *service) answer { s.post(); return s.post() }, draft: replay201, runs: 1},
		{
			row: 3, name: "running", cfg: IdempotentConfig{StatusURL: byKey}, meet: func(s *service) answer {
				s.create = slow(10 * time.Second).ServeHTTP
				go s.post()
				time.Sleep(5500 * time.Millisecond)
				return s.post()
			},
			draft: "409 in-progress", accept: "202 in-progress", headers: []string{"Retry-After: 6", statusURL}, runs: 1,
		},
		{
			row: 4, name: "another request while it runs", meet: func(s *service) answer {
				s.create = slow(10 * time.Second).ServeHTTP
				go s.post()
				time.Sleep(time.Second)
				return record(s.handler, keyed("k1", `{"skuId":2}`))
			},
			draft: "422 mismatch", accept: "409 mismatch", headers: []string{docsLink}, runs: 1,
		},
		{
			row: 4, name: "another request when it is done", meet: func(s *service) answer {
				s.post()
				return record(s.handler, keyed("k1", `{"skuId":2}`))
			},
			draft: "422 mismatch", accept: "409 mismatch", headers: []string{docsLink}, runs: 1,
		},
		{
			row: 4, name: "another request when it is unknown", meet: func(s *service) answer {
				s.create = answers(500)
				s.post()
				return record(s.handler, keyed("k1", `{"skuId":2}`))
			},
			draft: "422 mismatch", accept: "409 mismatch", headers: []string{docsLink}, runs: 1,
		},
		{
			row: 4, name: "another request when it may be taken over", guard: idempotency.Config{Reconciler: didNotHappen},
			meet: func(s *service) answer {
				s.ownedByADeadProcess(time.Second)
				time.Sleep(2 * time.Second)
				return record(s.handler, keyed("k1", `{"skuId":2}`))
			},
			draft: "422 mismatch", accept: "409 mismatch", headers: []string{docsLink},
		},
		{
			row: 5, name: "no key where one is required", cfg: IdempotentConfig{Required: true},
			meet:  func(s *service) answer { return record(s.handler, request("POST", "/orders", "{}")) },
			draft: "400 key-missing", headers: []string{docsLink},
		},
		{
			row: 6, name: "malformed key", meet: func(s *service) answer { return record(s.handler, keyed(`"k1`, "{}")) },
			draft: "400 key-invalid", headers: []string{docsLink},
		},
		{
			row: 6, name: "two keys", meet: func(s *service) answer {
				r := keyed("k1", "{}")
				r.Header.Add("Idempotency-Key", "k1")
				return record(s.handler, r)
			},
			draft: "400 key-invalid", headers: []string{docsLink},
		},
		{
			row: 6, name: "long key", meet: func(s *service) answer { return record(s.handler, keyed(strings.Repeat("k", 256), "{}")) },
			draft: "400 key-invalid", headers: []string{docsLink},
		},
		{
			row: 7, name: "large body", cfg: IdempotentConfig{MaxBody: 10},
			meet:  func(s *service) answer { return record(s.handler, keyed("k1", `{"skuId":1234}`)) },
			draft: "413 body-too-large", headers: []string{"Connection: close"},
		},
		{
			row: 8, name: "no strict JSON", meet: func(s *service) answer { return record(s.handler, keyed("k1", `{"a":1,"a":2}`)) },
			draft: "400 not-canonical",
		},
		{
			row: 9, name: "its process has died, and it has happened", guard: idempotency.Config{Reconciler: happened},
			meet: func(s *service) answer {
				s.ownedByADeadProcess(time.Second)
				time.Sleep(2 * time.Second)
				return s.post()
			},
			draft: replay201,
		},
		{
			row: 10, name: "its process has died, and it has not happened", guard: idempotency.Config{Reconciler: didNotHappen},
			meet: func(s *service) answer {
				s.ownedByADeadProcess(time.Second)
				time.Sleep(2 * time.Second)
				a := s.post()
				if attempt := s.attempt.Load(); attempt != 2 {
					s.t.Errorf("attempt %d, want 2", attempt)
				}
				return a
			},
			draft: order201, runs: 1,
		},
		{
			row: 11, name: "its process has died, and nobody can tell", cfg: IdempotentConfig{StatusURL: byKey},
			meet: func(s *service) answer {
				s.ownedByADeadProcess(time.Second)
				time.Sleep(2 * time.Second)
				return s.post()
			},
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After: 30", statusURL},
		},
		{
			row: 11, name: "unknown, before it is looked into again", cfg: IdempotentConfig{StatusURL: byKey},
			meet: func(s *service) answer {
				s.ownedByADeadProcess(time.Second)
				time.Sleep(2 * time.Second)
				s.post()
				time.Sleep(10 * time.Second)
				return s.post()
			},
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After: 20", statusURL},
		},
		{
			row: 12, name: "no store", meet: func(s *service) answer { down(s); return s.post() },
			draft: "503 store-unavailable", headers: []string{"Retry-After"},
		},
		{
			row: 13, name: "no store, and the database arbitrates", cfg: IdempotentConfig{RunDegraded: true},
			meet: func(s *service) answer {
				down(s)
				s.create = func(w http.ResponseWriter, r *http.Request) {
					if !RunOf(r.Context()).Degraded {
						s.t.Error("the handler is not told")
					}
					created(w, r)
				}
				return s.post()
			},
			draft: order201, headers: []string{"Idempotency-Degraded: true"}, runs: 1,
		},
		{
			row: 14, name: "not stored", meet: func(s *service) answer {
				s.store.set(dead, "complete")
				a := s.post()
				if again := s.post(); !strings.HasSuffix(problemName(again), "in-progress") {
					s.t.Errorf("a retry at once: %s", problemName(again))
				}
				time.Sleep(15 * time.Second)
				if again := s.post(); !strings.HasSuffix(problemName(again), "outcome-unknown") {
					s.t.Errorf("a retry after the lease: %s", problemName(again))
				}
				return a
			},
			draft: order201, runs: 1,
		},
		{
			row: 14, name: "not stored, and it must be", cfg: IdempotentConfig{StrictPersist: true},
			meet:  func(s *service) answer { s.store.set(dead, "complete"); return s.post() },
			draft: "503 store-unavailable", headers: []string{"Retry-After"}, runs: 1,
		},
		{
			row: 14, name: "500, and not even that could be noted", cfg: IdempotentConfig{StrictPersist: true},
			meet:  func(s *service) answer { s.store.set(dead, "unknown"); s.create = answers(500); return s.post() },
			draft: "500", runs: 1,
		},
		{
			row: 15, name: "lease lost, and answered", guard: idempotency.Config{ExecTimeout: time.Hour},
			meet:  func(s *service) answer { return losesItsLease(s, func(w http.ResponseWriter) { created(w, nil) }) },
			draft: order201, runs: 1,
		},
		{
			row: 15, name: "lease lost, and given up", guard: idempotency.Config{ExecTimeout: time.Hour},
			meet:  func(s *service) answer { return losesItsLease(s, func(http.ResponseWriter) {}) },
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After"}, runs: 1,
		},
		{
			row: 15, name: "too slow, and given up", guard: idempotency.Config{ExecTimeout: time.Second},
			meet: func(s *service) answer {
				s.create = func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
				s.post()
				return s.post()
			},
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After: 30"}, runs: 1,
		},
		{
			row: 16, name: "panic", meet: func(s *service) answer {
				s.create = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
				first, panicked := recorded(s.handler, keyed("k1", `{"skuId":1}`))
				if panicked != http.ErrAbortHandler || first.body != "" {
					s.t.Errorf("panicked with %v, after %q", panicked, first.body)
				}
				return s.post()
			},
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After: 30"}, runs: 1,
		},
		{
			row: 16, name: "panic, and it has happened", guard: idempotency.Config{Reconciler: happened},
			meet: func(s *service) answer {
				s.create = func(http.ResponseWriter, *http.Request) { panic("after the effect") }
				recorded(s.handler, keyed("k1", `{"skuId":1}`))
				return s.post()
			},
			draft: replay201, runs: 1,
		},
		{
			row: 17, name: "500", meet: func(s *service) answer { s.create = answers(500); return s.post() },
			draft: "500", runs: 1,
		},
		{
			row: 17, name: "after 500", meet: func(s *service) answer { s.create = answers(500); s.post(); return s.post() },
			draft: "409 outcome-unknown", accept: "202 outcome-unknown", headers: []string{"Retry-After: 30"}, runs: 1,
		},
		{
			row: 17, name: "after 503 that did nothing", guard: idempotency.Config{Reconciler: didNotHappen},
			meet: func(s *service) answer {
				s.create = answers(503)
				s.post()
				s.create = created
				return s.post()
			},
			draft: order201, runs: 2,
		},
		{
			row: 18, name: "429", meet: func(s *service) answer { s.create = answers(429); return s.post() },
			draft: "429", runs: 1,
		},
		{
			row: 18, name: "after 401, 403, 408, 425 and 429", meet: func(s *service) answer {
				for _, status := range []int{401, 403, 408, 425, 429} {
					s.create = answers(status)
					if a := s.post(); a.status != status {
						s.t.Errorf("%d, want %d", a.status, status)
					}
				}
				s.create = created
				return s.post()
			},
			draft: order201, runs: 6,
		},
		{
			row: 19, name: "large answer", cfg: IdempotentConfig{MaxResponse: 10},
			meet: (*service).post, draft: order201, runs: 1,
		},
		{
			row: 19, name: "after a large answer", cfg: IdempotentConfig{MaxResponse: 10},
			meet:  func(s *service) answer { s.post(); return s.post() },
			draft: "409 replay-unavailable", headers: []string{"Location: /orders/o1"}, runs: 1,
		},
		{
			row: 19, name: "after a large answer whose headers are small", cfg: IdempotentConfig{MaxResponse: 100},
			meet: func(s *service) answer {
				s.create = func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Location", "/orders/o1")
					io.WriteString(w, strings.Repeat("x", 101))
				}
				s.post()
				return s.post()
			},
			draft: "409 replay-unavailable", headers: []string{"Location: /orders/o1"}, runs: 1,
		},
		{
			row: 19, name: "after an answer with large headers", cfg: IdempotentConfig{MaxResponse: 20},
			meet:  func(s *service) answer { s.post(); return s.post() },
			draft: "409 replay-unavailable", headers: []string{"Location: /orders/o1"}, runs: 1,
		},
		{
			row: 20, name: "no key", meet: func(s *service) answer {
				record(s.handler, request("POST", "/orders", "{}"))
				return record(s.handler, request("POST", "/orders", "{}"))
			},
			draft: order201, runs: 2,
		},
		{
			row: 20, name: "method without keys", meet: func(s *service) answer {
				r := keyed("k1", "{}")
				r.Method = "PUT"
				record(s.handler, r)
				return record(s.handler, r)
			},
			draft: order201, runs: 2,
		},
		{
			row: 20, name: "safe method", meet: func(s *service) answer {
				r := httptest.NewRequest("GET", "/orders", nil)
				r.Header.Set("Idempotency-Key", "k1")
				record(s.handler, r)
				return record(s.handler, r)
			},
			draft: order201, runs: 2,
		},
	}
}
