package httpguard

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

func TestReplayHasTheSameBytesAndNoHeadersOfItsOwnTime(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		const body = "\x00\xff\r\n\r\nresponse/1 200\r\n<html>"
		s := newService(t, IdempotentConfig{StoreHeaders: []string{
			"X-Total", "X-Hop", "X-Outer", "Set-Cookie", "date", "traceparent", "proxy-authenticate", "X-B3-TraceId"}}, idempotency.Config{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			for name, value := range map[string]string{
				"Content-Type": "application/x-order", "Content-Language": "de", "Content-Encoding": "x", "Content-Disposition": "inline",
				"Content-Location": "/o1", "Location": "/orders/o1", "ETag": `"1"`, "Last-Modified": "Mon, 30 Nov 2026 00:00:00 GMT",
				"Link": "</a>; rel=next", "X-Total": "7",
				"Set-Cookie": "session=secret", "WWW-Authenticate": "Basic", "Proxy-Authenticate": "Basic", "Authorization": "x",
				"Date": "Mon, 30 Nov 2026 00:00:00 GMT", "Age": "1", "Server": "x", "Traceparent": "00-1-1-00", "X-Request-Id": "r1", "X-B3-TraceId": "1",
				"X-Unlisted": "x", "X-Hop": "x", "Connection": "x-hop, x-other", "Idempotent-Replayed": "true",
			} {
				h.Set(name, value)
			}
			h.Add("Vary", "Accept")
			h.Add("Vary", "Accept-Language")
			h.Del("X-Outer-Deleted")
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, body[:5])
			io.WriteString(w, body[5:])
		}
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Outer", r.Header.Get("X-Request-Id"))
			w.Header().Set("X-Outer-Deleted", "x")
			w.Header().Set("Content-Language", "en")
			w.Header().Set("Vary", "Origin")
			s.handler.ServeHTTP(w, r)
		})
		server := serve(t, outer, http2)
		first := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1", "X-Request-Id", "r1")
		again := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1", "X-Request-Id", "r2")
		if first.status != 201 || again.status != 201 || first.body != body || again.body != body {
			t.Errorf("%d %q, then %d %q", first.status, first.body, again.status, again.body)
		}
		for _, name := range []string{"Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Content-Location",
			"Location", "ETag", "Last-Modified", "Link", "Vary", "X-Total", "Content-Length"} {
			if a, b := first.header.Values(name), again.header.Values(name); len(a) == 0 || !slices.Equal(a, b) {
				t.Errorf("%s is %q, then %q", name, a, b)
			}
		}
		for _, name := range []string{"Set-Cookie", "WWW-Authenticate", "Proxy-Authenticate", "Authorization", "Age", "Server",
			"Traceparent", "X-B3-TraceId", "X-Request-Id", "X-Unlisted", "X-Hop"} {
			if values := again.header.Values(name); len(values) > 0 {
				t.Errorf("%s is replayed: %q", name, values)
			}
		}
		if first.header.Get("Set-Cookie") == "" || first.header.Get("X-Unlisted") == "" || first.header.Get("X-Outer-Deleted") != "" {
			t.Errorf("the first answer lacks what the handler said: %v", first.header)
		}
		if again.header.Get("X-Outer") != "r2" || len(again.header.Values("Date")) != 1 || again.header.Get("Date") == "Mon, 30 Nov 2026 00:00:00 GMT" {
			t.Errorf("the replay's own headers: %v", again.header)
		}
		if again.header.Get("Idempotent-Replayed") != "true" {
			t.Error("the replay does not say that it is one")
		}
	})
}

// An answer without a type gets the same one as without the middleware, each time.
func TestTypeIsGuessedAsEver(t *testing.T) {
	for name, c := range map[string]struct {
		create http.HandlerFunc
		want   string
	}{
		"guessed": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "text/html; charset=utf-8"},
		"none": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		}, ""},
		"encoded": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "<html>")
		}, ""},
		"no body":  {func(w http.ResponseWriter, _ *http.Request) {}, ""},
		"no reply": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, ""},
	} {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		s.create = c.create
		server := serve(t, s.handler, false)
		for range 2 {
			a := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1")
			if got := a.header.Get("Content-Type"); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
}

// A type that middleware further out has set is the handler's too, and each time.
func TestReplayKeepsTheTypeThatWasSetFurtherOut(t *testing.T) {
	for name, typed := range map[string]string{"left alone": "", "set again": "application/json", "set to another": "text/plain"} {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		s.create = func(w http.ResponseWriter, _ *http.Request) {
			if typed != "" {
				w.Header().Set("Content-Type", typed)
			}
			io.WriteString(w, "{}")
		}
		server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			s.handler.ServeHTTP(w, r)
		}), false)
		for range 2 {
			a := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1")
			if got, want := a.header.Get("Content-Type"), cmp.Or(typed, "application/json"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// The handler changes the request as handlers do; its record is found all the same.
//
// field-reports: 72
func TestRequestIsNamedAsItCame(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	var bodies []string
	inner := http.StripPrefix("/api", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("ContentLength %d, %d bytes, %v", r.ContentLength, len(body), err)
		}
		bodies = append(bodies, string(body))
		r.Body = io.NopCloser(strings.NewReader("other"))
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Del("Idempotency-Key")
		r.URL.Path = "/rewritten"
		if len(bodies) == 1 {
			RunOf(r.Context()).Means(NoEffect)
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		created(w, r)
	}))
	s.create = inner.ServeHTTP
	post := func() answer {
		r := keyed("k1", `{"skuId": 1}`)
		r.URL.Path = "/api/orders"
		return record(s.handler, r)
	}
	if a := post(); a.status != 500 {
		t.Errorf("%d %s", a.status, a.body)
	}
	isOrder(t, post(), false)
	isOrder(t, post(), true)
	if !slices.Equal(bodies, []string{`{"skuId": 1}`, `{"skuId": 1}`}) {
		t.Errorf("the handler read %q", bodies)
	}
}

func TestReplacedSchemeStillFindsItsRecords(t *testing.T) {
	scheme := func(version string) *fingerprint.Scheme {
		s, err := fingerprint.New(fingerprint.Config{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	v1, v2 := scheme("v1"), scheme("v2")
	s := newService(t, IdempotentConfig{Schemes: []*fingerprint.Scheme{v1}}, idempotency.Config{})
	isOrder(t, s.post(), false)
	_, both := s.instance(IdempotentConfig{Schemes: []*fingerprint.Scheme{v2, v1}}, idempotency.Config{}, clock.NewSkewed(1))
	isOrder(t, record(both, keyed("k1", `{"skuId":1}`)), true)
	wantProblem(t, record(both, keyed("k1", `{"skuId":2}`)), http.StatusUnprocessableEntity, "mismatch")
	_, only := s.instance(IdempotentConfig{Schemes: []*fingerprint.Scheme{v2}}, idempotency.Config{}, clock.NewSkewed(1))
	wantProblem(t, record(only, keyed("k1", `{"skuId":1}`)), http.StatusUnprocessableEntity, "mismatch")
}

func TestCurrentShowsWhatHasBecomeOfIt(t *testing.T) {
	var fails error
	s := newService(t, IdempotentConfig{Current: func(r *http.Request, stored Response) (Response, error) {
		stored.Body = []byte(`{"orderId":"o1","status":"PAID"}`)
		return stored, fails
	}}, idempotency.Config{})
	isOrder(t, s.post(), false)
	if a := s.post(); a.status != 201 || a.body != `{"orderId":"o1","status":"PAID"}` || a.header.Get("Location") != "/orders/o1" {
		t.Errorf("%d %s", a.status, a.body)
	}
	fails = errors.New("no database")
	wantProblem(t, s.post(), http.StatusServiceUnavailable, "store-unavailable")
}

func TestRedactedIsShownOnce(t *testing.T) {
	s := newService(t, IdempotentConfig{Redact: func(r *Response) {
		copy(r.Body, "****")
		r.Header.Del("Location")
	}}, idempotency.Config{})
	s.create = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/cards/4000")
		io.WriteString(w, "4000 1234")
	}
	if a := s.post(); a.body != "4000 1234" || a.header.Get("Location") == "" {
		t.Errorf("first: %v %q", a.header, a.body)
	}
	if a := s.post(); a.body != "**** 1234" || a.header.Get("Location") != "" {
		t.Errorf("again: %v %q", a.header, a.body)
	}
}

// Redact may change what it is given in place: the client gets none of that.
func TestRedactingInPlaceLeavesTheAnswer(t *testing.T) {
	s := newService(t, IdempotentConfig{Redact: func(r *Response) { r.Header["Location"][0] = "/cards/****" }}, idempotency.Config{})
	s.create = func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", "/cards/4000") }
	server := serve(t, s.handler, false)
	for _, want := range []string{"/cards/4000", "/cards/****"} {
		if got := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1").header.Get("Location"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What does not come from a handler is held to the same rules.
func TestReconciledAnswerHasNoHeadersThatAreNotStored(t *testing.T) {
	s := newService(t, IdempotentConfig{StoreHeaders: []string{"X-Total"}}, idempotency.Config{
		Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
			return idempotency.Happened(Response{
				Status: http.StatusCreated,
				Header: http.Header{"Location": {"/orders/o1"}, "X-Total": {"7"}, "Set-Cookie": {"session=secret"}, "X-Other": {"x"}},
			}.Result()), nil
		},
	})
	s.create = answers(500)
	s.post()
	a := s.post()
	if a.status != http.StatusCreated || a.header.Get("Location") == "" || a.header.Get("X-Total") != "7" ||
		a.header.Get("Set-Cookie") != "" || a.header.Get("X-Other") != "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// A service that cannot say what is asked for runs nothing.
func TestOperationMustHaveAName(t *testing.T) {
	s := newService(t, IdempotentConfig{Operation: func(*http.Request) string { return "" }}, idempotency.Config{})
	wantProblem(t, s.post(), http.StatusInternalServerError, "misconfigured")
	if s.runs.Load() != 0 {
		t.Error("the handler ran")
	}
}
