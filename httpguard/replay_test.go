package httpguard

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

func TestReplayHasTheSameBytesAndNoHeadersOfItsOwnTime(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		const body = "\x00\xff\r\n\r\nresponse/1 200\r\n<html>"
		s := newService(t, IdempotentConfig{StoreHeaders: []string{"X-Total", "X-Hop", "Set-Cookie", "date", "traceparent"}}, idempotency.Config{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			for name, value := range map[string]string{
				"Content-Type": "application/x-order", "Content-Language": "de", "Content-Encoding": "x", "Content-Disposition": "inline",
				"Content-Location": "/o1", "Location": "/orders/o1", "ETag": `"1"`, "Last-Modified": "Mon, 30 Nov 2026 00:00:00 GMT",
				"Link": "</a>; rel=next", "X-Total": "7",
				"Set-Cookie": "session=secret", "WWW-Authenticate": "Basic", "Proxy-Authenticate": "Basic", "Authorization": "x",
				"Date": "Mon, 30 Nov 2026 00:00:00 GMT", "Age": "1", "Server": "x", "Traceparent": "00-1-1-00", "X-Request-Id": "r1",
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
			"Traceparent", "X-Request-Id", "X-Unlisted", "X-Hop"} {
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

// What has a key is kept back, so that 201 stays 201; what has none streams.
//
// field-reports: 122
func TestOptionalInterfacesOfTheWriter(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		seen := make(chan struct{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("SetWriteDeadline: %v", err)
			}
			if err := control.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("SetReadDeadline: %v", err)
			}
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "begun")
			err := control.Flush()
			if _, keyed := r.Header["Idempotency-Key"]; keyed {
				if _, flusher := w.(http.Flusher); flusher || !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("with a key: Flusher %t, Flush says %v", flusher, err)
				}
			} else {
				if err != nil {
					t.Errorf("without a key: Flush says %v", err)
				}
				<-seen
			}
			io.WriteString(w, " and done")
			if RunOf(r.Context()) != nil {
				w.WriteHeader(http.StatusInternalServerError) // too late: the first one counts
			}
		}
		server := serve(t, s.handler, http2)
		var hints []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, h.Get("Link"))
				return nil
			},
		})
		for _, replayed := range []string{"", "true"} {
			hints = nil
			a, err := trySend(ctx, server, "POST", "/orders", strings.NewReader("{}"), "Idempotency-Key", "k1")
			if err != nil || a.status != 201 || a.body != "begun and done" || a.header.Get("Idempotent-Replayed") != replayed ||
				a.header.Get("Link") != "" {
				t.Errorf("%d %q %v, %v", a.status, a.body, a.header, err)
			}
			if first := replayed == ""; first != slices.Equal(hints, []string{"</style.css>; rel=preload"}) {
				t.Errorf("early hints %q, replayed %q", hints, replayed)
			}
		}

		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/orders", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		begun := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, begun); err != nil || string(begun) != "begun" {
			t.Errorf("%q, %v", begun, err)
		}
		close(seen) // the handler is still inside
		rest, _ := io.ReadAll(res.Body)
		if string(rest) != " and done" || res.StatusCode != 201 {
			t.Errorf("%d …%q", res.StatusCode, rest)
		}
	})
}

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
		var end = make(chan struct{})
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
			if a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		}
		close(end)
		all.Wait()
		isOrder(t, await(t, answers), false)
		for range n {
			all.Go(func() { answers <- send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1") })
			all.Go(func() {
				wantProblem(t, send(t, server, "POST", "/orders", "[]", "Idempotency-Key", "k1"), http.StatusUnprocessableEntity, "mismatch")
			})
		}
		all.Wait()
		for range n {
			isOrder(t, await(t, answers), true)
		}
		if runs := s.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// The memory is that of the whole test, client included.
//
// field-reports: 97
func TestLargeAnswerIsPassedOnAndNotKept(t *testing.T) {
	const size = 256 << 20
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	s.create = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/orders/o1")
		w.WriteHeader(http.StatusCreated)
		if n, err := io.Copy(w, io.LimitReader(zeros{}, size)); n != size || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	server := serve(t, s.handler, false)
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/orders", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"User": "u1", "Idempotency-Key": "k1", "Content-Type": "application/json"} {
		r.Header.Set(name, value)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil || res.StatusCode != http.StatusCreated {
		t.Errorf("%d with %d bytes, %v", res.StatusCode, n, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.Sys - before.Sys; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	again := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1")
	wantProblem(t, again, http.StatusConflict, "replay-unavailable")
	if again.header.Get("Location") != "/orders/o1" || s.runs.Load() != 1 {
		t.Errorf("Location %q, %d runs", again.header.Get("Location"), s.runs.Load())
	}
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
			http.Error(w, "no", 500)
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

// Trailers belong to the first answer, and are not stored.
func TestTrailersGoToTheFirstClient(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		s.create = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Sum")
			io.WriteString(w, "body")
			w.Header().Set("Sum", "1")
			w.Header().Set(http.TrailerPrefix+"Late", "2")
			w.Header().Set("Content-Language", "de") // too late, and no trailer
		}
		server := serve(t, s.handler, http2)
		for _, want := range []http.Header{{"Sum": {"1"}, "Late": {"2"}}, nil} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("User", "u1")
			r.Header.Set("Idempotency-Key", "k1")
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(body) != "body" || !maps.EqualFunc(res.Trailer, want, slices.Equal) || res.Header.Get("Content-Language") != "" {
				t.Errorf("%q %v, trailer %v, %v; want trailer %v", body, res.Header, res.Trailer, err, want)
			}
		}
	})
}

// A service that cannot say what is asked for runs nothing.
func TestOperationMustHaveAName(t *testing.T) {
	s := newService(t, IdempotentConfig{Operation: func(*http.Request) string { return "" }}, idempotency.Config{})
	wantProblem(t, s.post(), http.StatusInternalServerError, "misconfigured")
	if s.runs.Load() != 0 {
		t.Error("the handler ran")
	}
}

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
