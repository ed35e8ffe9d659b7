package httpguard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

// service creates orders behind Idempotent, on a store that can fail. In a
// bubble time is the bubble's.
type service struct {
	t       testing.TB
	store   *faultyStore
	guard   *idempotency.Guard
	handler http.Handler

	runs    atomic.Int64 // of create
	attempt atomic.Int64 // of the last one
	create  http.HandlerFunc
}

// created answers as the first order of a shop does.
func created(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/o1")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"orderId":"o1"}`)
}

func newService(t testing.TB, cfg IdempotentConfig, of idempotency.Config) *service {
	t.Helper()
	s := &service{t: t, create: created}
	c := clock.NewSkewed(1)
	s.store = newFaultyStore(memstore.New(c))
	s.guard, s.handler = s.instance(cfg, of, c)
	return s
}

// instance is a further process of the service, with a clock of its own.
func (s *service) instance(cfg IdempotentConfig, of idempotency.Config, c clock.Clock) (*idempotency.Guard, http.Handler) {
	s.t.Helper()
	of.Clock = c
	guard, err := idempotency.New(s.store, of)
	if err != nil {
		s.t.Fatal(err)
	}
	if cfg.Principal == nil {
		cfg.Principal = user
	}
	wrap, err := Idempotent(guard, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return guard, wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		if run := RunOf(r.Context()); run != nil {
			s.attempt.Store(run.Attempt)
		}
		s.create(w, r)
	}))
}

// keyed is a request of user u1 with a key.
func keyed(key, body string) *http.Request {
	r := request("POST", "/orders", body)
	r.Header.Set("Idempotency-Key", key)
	return r
}

// post sends order k1 to the handler, and waits for the answer.
func (s *service) post() answer { return record(s.handler, keyed("k1", `{"skuId":1}`)) }

// ownedByADeadProcess claims k1's record for a process that is not there any more.
func (s *service) ownedByADeadProcess(lease time.Duration) {
	s.t.Helper()
	r := keyed("k1", `{"skuId":1}`)
	cfg, err := IdempotentConfig{Principal: user}.withDefaults()
	if err != nil {
		s.t.Fatal(err)
	}
	print, err := Fingerprint(cfg.Schemes[0], r, []byte(`{"skuId":1}`))
	if err != nil {
		s.t.Fatal(err)
	}
	claim, err := s.store.Store.Claim(context.Background(), idempotency.ClaimRequest{
		Key:         idempotency.Key{Operation: "POST /orders", Principal: "u1", Value: "k1"},
		Fingerprint: print, Owner: idempotency.NewToken(), Lease: lease, Retention: 24 * time.Hour, Holder: "dead",
	})
	if err != nil || claim.Outcome != idempotency.Created && claim.Outcome != idempotency.Takeover {
		s.t.Fatalf("claim: %v, %v", claim.Outcome, err)
	}
}

func happened(context.Context, idempotency.Record) (idempotency.Verdict, error) {
	return idempotency.Happened(Response{
		Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/orders/o1"}},
		Body:   []byte(`{"orderId":"o1"}`),
	}.Result()), nil
}

func didNotHappen(context.Context, idempotency.Record) (idempotency.Verdict, error) {
	return idempotency.DidNotHappen(), nil
}

// isOrder checks that a is the answer of created, replayed or not.
func isOrder(t testing.TB, a answer, replayed bool) {
	t.Helper()
	if a.status != http.StatusCreated || a.body != `{"orderId":"o1"}` || a.header.Get("Location") != "/orders/o1" ||
		a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s, want the order", a.status, a.header, a.body)
	}
	want := ""
	if replayed {
		want = "true"
	}
	if got := a.header.Get("Idempotent-Replayed"); got != want {
		t.Errorf("Idempotent-Replayed is %q, want %q", got, want)
	}
}

// isProblem checks that a is a problem; in the accepted preset one with a status
// of success has another type.
func isProblem(t testing.TB, a answer, status int, name string) {
	t.Helper()
	if status < 400 {
		if kind := a.header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("Content-Type %q with %d", kind, status)
		}
		a.header.Set("Content-Type", "application/problem+json")
	}
	wantProblem(t, a, status, name)
}

// recorded is what h answers, and what it panicked with.
func recorded(h http.Handler, r *http.Request) (a answer, panicked any) {
	w := httptest.NewRecorder()
	defer func() {
		panicked = recover()
		a = answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	}()
	h.ServeHTTP(w, r)
	return a, nil
}

func problemName(a answer) string {
	_, name, _ := strings.Cut(a.body, "#")
	name, _, _ = strings.Cut(name, `"`)
	return fmt.Sprint(a.status, " ", name)
}

func down(s *service) { s.store.set(dead, "claim", "renew", "complete", "unknown", "abandon") }

// answers is a handler that answers with status.
func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", status) }
}

// losesItsLease is a handler that goes on until its lease is lost to another, and
// then does what end says.
func losesItsLease(s *service, end func(w http.ResponseWriter)) answer {
	s.create = func(w http.ResponseWriter, r *http.Request) {
		s.store.set(dead, "renew")
		<-r.Context().Done()
		if cause := context.Cause(r.Context()); !errors.Is(cause, idempotency.ErrLeaseLost) {
			s.t.Errorf("ended by %v, want the loss of the lease", cause)
		}
		time.Sleep(15 * time.Second) // it is told before the store would give the lease to another
		s.ownedByADeadProcess(time.Hour)
		end(w)
	}
	a := s.post()
	if again := s.post(); problemName(again) != "409 in-progress" && problemName(again) != "202 in-progress" {
		s.t.Errorf("the record of the one that took over became %s", problemName(again))
	}
	return a
}
