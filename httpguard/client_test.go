package httpguard

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// user is the principal in all tests.
func user(r *http.Request) string { return r.Header.Get("User") }

// serve is a server on a real socket, which speaks HTTP/2 if http2 is set.
func serve(t testing.TB, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(complaints{t}, "", 0)
	if http2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// complaints is what the server logs. Panics, and connections that tests give up,
// are no failure; that the header was written twice is.
type complaints struct{ testing.TB }

func (c complaints) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("superfluous")) {
		c.Errorf("%s", line)
	}
	return len(line), nil
}

// await is what comes from c, which is a failure if nothing does.
func await[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing has come for 20s")
	}
	return v
}

// overEach runs test over both versions of HTTP.
func overEach(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Run("http1", func(t *testing.T) { test(t, false) })
	t.Run("http2", func(t *testing.T) { test(t, true) })
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
	hangUp bool // the server closes the connection
}

// send sends a request with user u1 and a JSON body, and reads the answer.
func send(t testing.TB, s *httptest.Server, method, path, body string, header ...string) answer {
	t.Helper()
	a, err := trySend(t.Context(), s, method, path, strings.NewReader(body), header...)
	if err != nil {
		t.Error(err) // not Fatal, as it may be any goroutine
	}
	return a
}

func trySend(ctx context.Context, s *httptest.Server, method, path string, body io.Reader, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	if r.Header.Get("User") == "" {
		r.Header.Set("User", "u1")
	}
	r.Header.Set("Content-Type", "application/json")
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text), res.Close}, err
}

// wantProblem checks that a is a problem of this status and name.
func wantProblem(t testing.TB, a answer, status int, name string) {
	t.Helper()
	var got struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Errorf("%d %q: %v", a.status, a.body, err)
	}
	if a.status != status || got.Status != status || got.Type != defaultDocs+"#"+name || got.Title == "" || got.Detail == "" {
		t.Errorf("%d %s, want %d and type …#%s", a.status, a.body, status, name)
	}
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("Content-Type %q", kind)
	}
	if link := a.header.Get("Link"); link != "<"+defaultDocs+"#"+name+`>; rel="describedby"` {
		t.Errorf("Link %q", link)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// request is one of user u1 with a JSON body, for a handler that is called
// directly.
func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("User", "u1")
	r.Header.Set("Content-Type", "application/json")
	return r
}

func record(h http.Handler, r *http.Request) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{status: w.Code, header: w.Header(), body: w.Body.String()}
}
