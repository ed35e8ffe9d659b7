package httpguard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func submitOnceOn(t testing.TB, lock Locker, cfg SubmitConfig, next http.Handler) http.Handler {
	t.Helper()
	if cfg.Principal == nil {
		cfg.Principal = user
	}
	wrap, err := SubmitOnce(lock, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(next)
}

// order is a handler that says when it has begun, and ends when it is told.
type order struct {
	begun, end chan struct{}
	runs       atomic.Int64
}

func newOrder() *order { return &order{begun: make(chan struct{}, 100), end: make(chan struct{})} }

func (o *order) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.runs.Add(1)
	o.begun <- struct{}{}
	<-o.end
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, `{"orderId":"o1"}`)
}

func TestOfTwoAtOnceOneIsHandledAndAThirdLater(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		lock, o := newMemoryLock(), newOrder()
		lock.released = make(chan string, 9)
		s := serve(t, submitOnceOn(t, lock, SubmitConfig{}, o), http2)
		first := make(chan answer, 1)
		go func() { first <- send(t, s, "POST", "/orders", `{"skuId":1,"count":2}`) }()
		await(t, o.begun)

		second := send(t, s, "POST", "/orders", `{"count":2, "skuId":1}`)
		wantProblem(t, second, http.StatusTooManyRequests, "submitted-twice")
		if after := second.header.Get("Retry-After"); len(after) != 1 || after < "1" || after > "5" {
			t.Errorf("Retry-After %q, want 1 to 5", after)
		}
		if !strings.Contains(second.body, defaultMessage) {
			t.Errorf("says %s", second.body)
		}

		close(o.end)
		if a := await(t, first); a.status != http.StatusCreated {
			t.Errorf("first: %d", a.status)
		}
		await(t, lock.released)
		if a := send(t, s, "POST", "/orders", `{"skuId":1,"count":2}`); a.status != http.StatusCreated {
			t.Errorf("third: %d %s", a.status, a.body)
		}
		if runs := o.runs.Load(); runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}

// All hundred have been answered or are inside when the handler ends, so no one
// of them can have come late.
func TestOfAHundredAtOnceOneIsHandled(t *testing.T) {
	overEach(t, func(t *testing.T, http2 bool) {
		var decided decisions
		o := newOrder()
		s := serve(t, submitOnceOn(t, newMemoryLock(), SubmitConfig{TTL: time.Minute, Decided: decided.count}, o), http2)
		statuses := make(chan int, 100)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { statuses <- send(t, s, "POST", "/orders", `{"skuId":1}`).status })
		}
		for range 99 {
			if status := await(t, statuses); status != http.StatusTooManyRequests {
				t.Errorf("%d while one is inside", status)
			}
		}
		close(o.end)
		all.Wait()
		if status := await(t, statuses); status != http.StatusCreated {
			t.Errorf("the one inside: %d", status)
		}
		if runs := o.runs.Load(); runs != 1 {
			t.Errorf("%d runs", runs)
		}
		if decided[Admitted].Load() != 1 || decided[Refused].Load() != 99 {
			t.Errorf("told of %d admitted, %d refused", decided[Admitted].Load(), decided[Refused].Load())
		}
	})
}

// field-reports: 74
func TestOnlyTheSameSubmissionIsRefused(t *testing.T) {
	o := newOrder()
	s := serve(t, submitOnceOn(t, newMemoryLock(), SubmitConfig{TTL: time.Minute}, o), false)
	var inside sync.WaitGroup
	defer inside.Wait()
	defer close(o.end)
	for _, c := range []struct {
		name, user, method, path, body string
		refused                        bool
	}{
		{"the first", "u1", "PATCH", "/loc/123", `{"a":1,"b":[2]}`, false},
		{"the same", "u1", "PATCH", "/loc/123", `{"a":1,"b":[2]}`, true},
		{"other order of names", "u1", "PATCH", "/loc/123", `{"b":[2.0], "a":1}`, true},
		{"another resource", "u1", "PATCH", "/loc/456", `{"a":1,"b":[2]}`, false},
		{"another method", "u1", "PUT", "/loc/123", `{"a":1,"b":[2]}`, false},
		{"another user", "u2", "PATCH", "/loc/123", `{"a":1,"b":[2]}`, false},
		{"another body", "u1", "PATCH", "/loc/123", `{"a":1,"b":[3]}`, false},
		{"no body", "u1", "PATCH", "/loc/123", ``, false},
		{"the empty object", "u1", "PATCH", "/loc/123", `{}`, true},
		{"a query", "u1", "PATCH", "/loc/123?x=1&y=2", `{"a":1,"b":[2]}`, false},
		{"the query in another order", "u1", "PATCH", "/loc/123?y=2&x=1", `{"a":1,"b":[2]}`, true},
		{"a body that is no JSON", "u1", "PATCH", "/loc/123", `{"a":`, false},
		{"the same that is no JSON", "u1", "PATCH", "/loc/123", `{"a":`, true},
	} {
		answered := make(chan answer, 1)
		inside.Go(func() {
			a, err := trySend(context.WithoutCancel(t.Context()), s, c.method, c.path, strings.NewReader(c.body), "User", c.user)
			if err != nil {
				t.Error(err)
			}
			answered <- a
		})
		select {
		case <-o.begun:
			if c.refused {
				t.Errorf("%s: handled", c.name)
			}
		case a := <-answered:
			if !c.refused || a.status != http.StatusTooManyRequests {
				t.Errorf("%s: %d %s", c.name, a.status, a.body)
			}
		}
	}
}

func TestIntentLeavesOutWhatDiffersFromClickToClick(t *testing.T) {
	cfg := SubmitConfig{TTL: time.Minute, Intent: func(r *http.Request, body []byte) []byte {
		order, _, _ := bytes.Cut(body, []byte(" at "))
		return order
	}}
	o := newOrder()
	s := serve(t, submitOnceOn(t, newMemoryLock(), cfg, o), false)
	handled := make(chan answer, 2)
	go func() { handled <- send(t, s, "POST", "/orders", "one tea at 10:00:00.0") }()
	await(t, o.begun)
	wantProblem(t, send(t, s, "POST", "/orders", "one tea at 10:00:00.1"), http.StatusTooManyRequests, "submitted-twice")
	go func() { handled <- send(t, s, "POST", "/orders", "two teas at 10:00:00.1") }()
	await(t, o.begun)
	close(o.end)
	await(t, handled)
	await(t, handled)
}

func TestGuardEndsHoweverTheHandlerDoes(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"success":  func(w http.ResponseWriter, r *http.Request) {},
		"error":    func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"panic":    func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"goexit":   func(w http.ResponseWriter, r *http.Request) { runtime.Goexit() },
		"streamed": func(w http.ResponseWriter, r *http.Request) { http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			lock := newMemoryLock()
			lock.released = make(chan string, 1)
			s := serve(t, submitOnceOn(t, lock, SubmitConfig{}, handler), false)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go trySend(ctx, s, "POST", "/orders", strings.NewReader("{}")) // goexit is never answered
			await(t, lock.released)
			if keys := lock.keys(); len(keys) > 0 {
				t.Errorf("still held: %q", keys)
			}
		})
	}
}

func TestAPanicGoesOn(t *testing.T) {
	boom := errors.New("boom")
	h := submitOnceOn(t, newMemoryLock(), SubmitConfig{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(boom) }))
	defer func() {
		if got := recover(); got != boom {
			t.Errorf("panicked with %v", got)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), request("POST", "/orders", "{}"))
}

func TestAnswerDoesNotWaitForTheRelease(t *testing.T) {
	lock := newMemoryLock()
	lock.hold, lock.released = make(chan struct{}), make(chan string, 1)
	s := serve(t, submitOnceOn(t, lock, SubmitConfig{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})), false)
	if a := send(t, s, "POST", "/orders", "{}"); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
	if keys := lock.keys(); len(keys) != 1 {
		t.Errorf("held: %q, although its release has not been let go on", keys)
	}
	close(lock.hold)
	await(t, lock.released)
}

func TestGuardIsReleasedAfterTheClientHasGone(t *testing.T) {
	lock, o := newMemoryLock(), newOrder()
	lock.released = make(chan string, 1)
	s := serve(t, submitOnceOn(t, lock, SubmitConfig{}, o), false)
	ctx, cancel := context.WithCancel(t.Context())
	go trySend(ctx, s, "POST", "/orders", strings.NewReader("{}"))
	await(t, o.begun)
	cancel()
	close(o.end)
	await(t, lock.released)
}

// field-reports: 97
func TestBodyIsReadUpToItsLimit(t *testing.T) {
	o := newOrder()
	close(o.end)
	s := serve(t, submitOnceOn(t, newMemoryLock(), SubmitConfig{MaxBody: 1000}, o), false)
	fits := strings.Repeat("x", 1000)
	for name, body := range map[string]io.Reader{
		"said to be too long": strings.NewReader(fits + "x"),
		"a gigabyte, chunked": io.LimitReader(zeros{}, 1<<30),
	} {
		a, err := trySend(t.Context(), s, "POST", "/orders", body)
		if err != nil {
			continue // the server has hung up on a client that goes on sending
		}
		wantProblem(t, a, http.StatusRequestEntityTooLarge, "body-too-large")
		if !a.hangUp {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	if o.runs.Load() != 0 {
		t.Error("the handler ran")
	}
	if a := send(t, s, "POST", "/orders", fits); a.status != http.StatusCreated {
		t.Errorf("1000 bytes: %d", a.status)
	}
}

func TestHandlerReadsTheWholeBody(t *testing.T) {
	s := serve(t, submitOnceOn(t, newMemoryLock(), SubmitConfig{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("%d bytes, ContentLength %d, %v", len(body), r.ContentLength, err)
		}
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		twice, _ := io.ReadAll(again)
		if !bytes.Equal(body, twice) {
			t.Errorf("GetBody has %q", twice)
		}
		w.Write(body)
	})), false)
	a, err := trySend(t.Context(), s, "POST", "/orders", io.MultiReader(strings.NewReader("chun"), strings.NewReader("ked")))
	if err != nil || a.body != "chunked" {
		t.Errorf("%q, %v", a.body, err)
	}
}

func TestSubmitConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]SubmitConfig{
		"Principal": {},
		"TTL":       {Principal: user, TTL: -1},
		"TTL is 1h": {Principal: user, TTL: time.Hour},
		"MaxBody":   {Principal: user, MaxBody: -1},
		"Window":    {Principal: user, Window: true, Renew: true},
		"DocsURL":   {Principal: user, DocsURL: "/docs#problems"},
	} {
		if _, err := SubmitOnce(newMemoryLock(), cfg); err == nil || !strings.Contains(err.Error(), "SubmitConfig."+want) {
			t.Errorf("want an error about %s, got %v", want, err)
		}
	}
	if _, err := SubmitOnce(nil, SubmitConfig{Principal: user}); err == nil {
		t.Error("without a locker: no error")
	}
}
