package httpguard

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

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

// What a handler hinted at is no part of an answer that takes its place.
func TestHintsAreNotInAnotherAnswer(t *testing.T) {
	s := newService(t, IdempotentConfig{StrictPersist: true}, idempotency.Config{})
	s.store.set(dead, "complete")
	s.create = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
	}
	server := serve(t, s.handler, false)
	wantProblem(t, send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1"), http.StatusServiceUnavailable, "store-unavailable")
}
