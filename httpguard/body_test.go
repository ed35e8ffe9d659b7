package httpguard

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

// reading is h behind middleware that reads the request before, as a check of a token
// against forgery does.
func reading(h http.Handler, read func(r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read(r)
		h.ServeHTTP(w, r)
	})
}

func form(body string) *http.Request {
	r := keyed("k1", body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// A form that has been read is still what tells requests apart, and can be read again.
func TestFormThatWasReadBeforeTellsRequestsApart(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	s.create = func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "count=1&skuId=a+b" || r.PostFormValue("skuId") != "a b" {
			t.Errorf("the handler reads %q, %v, and %v", body, err, r.PostForm)
		}
		created(w, r)
	}
	h := reading(s.handler, func(r *http.Request) { r.FormValue("csrf") })
	isOrder(t, record(h, form("skuId=a+b&count=1")), false)
	isOrder(t, record(h, form("skuId=a+b&count=1")), true)
	wantProblem(t, record(h, form("skuId=a+b&count=2")), http.StatusUnprocessableEntity, "mismatch")
}

// What cannot be known any more is not taken for the same.
func TestBodyThatWasReadBeforeIsRefused(t *testing.T) {
	var files bytes.Buffer
	m := multipart.NewWriter(&files)
	m.WriteField("skuId", "1")
	m.Close()
	parts := keyed("k1", files.String())
	parts.Header.Set("Content-Type", m.FormDataContentType())
	parts.ContentLength = -1
	for name, c := range map[string]struct {
		request *http.Request
		read    func(*http.Request)
	}{
		"read":  {keyed("k1", `{"skuId":1}`), func(r *http.Request) { io.Copy(io.Discard, r.Body) }},
		"parts": {parts, func(r *http.Request) { r.ParseMultipartForm(1 << 20) }},
	} {
		s := newService(t, IdempotentConfig{}, idempotency.Config{})
		if wantProblem(t, record(reading(s.handler, c.read), c.request), http.StatusInternalServerError, "misconfigured"); s.runs.Load() != 0 {
			t.Errorf("%s: the handler ran", name)
		}
	}
}

// A compressed body is compared as it came.
func TestCompressedBodyIsTaken(t *testing.T) {
	zipped := func(text string) *http.Request {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		r := keyed("k1", b.String())
		r.Header.Set("Content-Encoding", "gzip")
		return r
	}
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	isOrder(t, record(s.handler, zipped(`{"skuId":1}`)), false)
	isOrder(t, record(s.handler, zipped(`{"skuId":1}`)), true)
	wantProblem(t, record(s.handler, zipped(`{"skuId":2}`)), http.StatusUnprocessableEntity, "mismatch")
	wantProblem(t, record(s.handler, keyed("k1", strings.Repeat("{", 3))), http.StatusBadRequest, "not-canonical")
}
