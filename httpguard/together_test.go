package httpguard

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// The guard stops what comes at the same time, and not what comes again because an
// answer was lost; with a key both are stopped, the second by the first's answer.
func TestGuardStopsTheSimultaneousAndAKeyTheRepeatedToo(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	lock := newMemoryLock()
	lock.released = make(chan string, 9)
	mux := http.NewServeMux()
	mux.Handle("POST /orders", submitOnceOn(t, lock, SubmitConfig{TTL: time.Minute}, s.handler))
	server := serve(t, mux, false)
	loseAnswer := func(header ...string) {
		send(t, server, "POST", "/orders", `{"skuId":1}`, header...) // and nobody looks at it
	}

	loseAnswer()
	await(t, lock.released)
	loseAnswer()
	await(t, lock.released)
	if runs := s.runs.Load(); runs != 2 {
		t.Errorf("the guard alone: %d orders, want 2: it forgets as soon as the first is done", runs)
	}
	loseAnswer("Idempotency-Key", "k1")
	isOrder(t, send(t, server, "POST", "/orders", `{"skuId":1}`, "Idempotency-Key", "k1"), true)
	if runs := s.runs.Load(); runs != 3 {
		t.Errorf("with a key: %d more orders, want 1", runs-2)
	}

	begun, end := make(chan struct{}), make(chan struct{})
	s.create = func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-end
		created(w, r)
	}
	done := make(chan answer)
	for _, header := range [][]string{nil, {"Idempotency-Key", "k2"}} {
		go func() { done <- send(t, server, "POST", "/orders", `{"skuId":1}`, header...) }()
		await(t, begun)
	}
	wantProblem(t, send(t, server, "POST", "/orders", `{"skuId":1}`), http.StatusTooManyRequests, "submitted-twice")
	wantProblem(t, send(t, server, "POST", "/orders", `{"skuId":1}`, "Idempotency-Key", "k2"), http.StatusConflict, "in-progress")
	close(end)
	isOrder(t, await(t, done), false)
	isOrder(t, await(t, done), false)
}

// A double click whose every click makes a key of its own.
func TestGuardBehindKeysStopsTwoKeysForOneSubmission(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	o := newOrder()
	lock := newMemoryLock()
	lock.released = make(chan string, 9)
	s.create = submitOnceOn(t, lock, SubmitConfig{TTL: time.Minute, Keyed: true}, o).ServeHTTP
	server := serve(t, s.handler, false)
	first := make(chan answer, 1)
	go func() { first <- send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1") }()
	await(t, o.begun)
	wantProblem(t, send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k2"), http.StatusTooManyRequests, "submitted-twice")
	close(o.end)
	await(t, first)
	await(t, lock.released)
	// 429 has had no effect, so the key is free.
	if a := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k2"); a.status != http.StatusCreated {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Whoever has lost access is shown no answer, as authentication comes before.
func TestReplayIsNotShownToWhoHasLostAccess(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	allowed := true
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		s.handler.ServeHTTP(w, r)
	}), false)
	isOrder(t, send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1"), false)
	allowed = false
	if a := send(t, server, "POST", "/orders", "{}", "Idempotency-Key", "k1"); a.status != http.StatusForbidden {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// field-reports: 97
func TestBodyWithAKeyIsReadUpToItsLimit(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	server := serve(t, s.handler, false)
	for name, body := range map[string]io.Reader{
		"a gigabyte, chunked": io.LimitReader(zeros{}, 1<<30),
		"said to be too long": strings.NewReader(strings.Repeat("x", 1<<20+1)),
	} {
		a, err := trySend(t.Context(), server, "POST", "/orders", body, "Idempotency-Key", "k1")
		if err != nil {
			continue // the server has hung up on a client that goes on sending
		}
		wantProblem(t, a, http.StatusRequestEntityTooLarge, "body-too-large")
		if !a.hangUp {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	if runs, claims := s.runs.Load(), s.store.called("claim"); runs != 0 || claims != 0 {
		t.Errorf("%d runs, %d claims", runs, claims)
	}
	// Too much is said: nobody waits for it.
	large := dial(t, server)
	io.WriteString(large, "POST /orders HTTP/1.1\r\nHost: x\r\nUser: u1\r\nIdempotency-Key: k2\r\nContent-Length: 1048577\r\n\r\n")
	large.SetReadDeadline(time.Now().Add(20 * time.Second))
	status := make([]byte, len("HTTP/1.1 413 "))
	if _, err := io.ReadFull(large, status); err != nil || string(status) != "HTTP/1.1 413 " {
		t.Errorf("%q, %v", status, err)
	}
	// Less than was said: it is no request.
	conn := dial(t, server)
	io.WriteString(conn, "POST /orders HTTP/1.1\r\nHost: x\r\nUser: u1\r\nIdempotency-Key: k2\r\nContent-Length: 100\r\n\r\nshort")
	conn.CloseWrite()
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") || !strings.Contains(string(text), "#body-unreadable") {
		t.Errorf("%q, %v", text, err)
	}
	if runs, claims := s.runs.Load(), s.store.called("claim"); runs != 0 || claims != 0 {
		t.Errorf("%d runs, %d claims", runs, claims)
	}
}

// dial is a bare connection to s.
func dial(t *testing.T, s *httptest.Server) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// field-reports: 93
func TestNothingIsKeptPerKey(t *testing.T) {
	lock := newMemoryLock()
	lock.released = make(chan string, 1)
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	s.create = answers(http.StatusTooManyRequests) // frees the key
	h := submitOnceOn(t, lock, SubmitConfig{}, s.handler)
	heap := func(round int) int {
		for i := range 3000 {
			body := fmt.Sprintf("[%d,%d]", round, i)
			record(h, request("POST", "/orders", body))
			await(t, lock.released)
			record(h, keyed(fmt.Sprint(round, "-", i), body))
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap(1)
	if grown := heap(2) - before; grown > 300<<10 {
		t.Errorf("memory has grown by %d bytes in 6000 requests", grown)
	}
	if keys := lock.keys(); len(keys) > 0 {
		t.Errorf("%d keys are held", len(keys))
	}
}
