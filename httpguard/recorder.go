package httpguard

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// recorder is what a handler writes to, so that its answer can be stored before
// the client sees it. An answer with more than limit bytes cannot be kept, and from
// there on goes to the client as it is written.
//
// It has no Unwrap, and neither Flush nor Hijack: through those the client would see
// an answer that may come out differently. With Unwrap a Flush even sends a 200
// ahead of the handler's 201.
type recorder struct {
	w      http.ResponseWriter
	before http.Header // of w, before the handler
	header http.Header // the handler's
	limit  int64

	status   int         // of the answer; 0 as long as there is none
	answered http.Header // as they were when the status was written
	body     bytes.Buffer
	sent     bool // the answer has begun to go to the client
}

func newRecorder(w http.ResponseWriter, limit int64) *recorder {
	return &recorder{w: w, before: w.Header().Clone(), header: w.Header().Clone(), limit: limit}
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. The first one counts. Information such
// as early hints goes to the client at once and is not stored.
func (r *recorder) WriteHeader(status int) {
	switch {
	case r.status != 0:
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		replaceHeader(r.w.Header(), r.header)
		r.w.WriteHeader(status)
		replaceHeader(r.w.Header(), r.before)
	case status < 200 || status > 999:
		panic("httpguard: invalid status " + strconv.Itoa(status))
	default:
		r.status = status
		r.answered = r.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	switch {
	case !bodyAllowed(r.status):
		return 0, http.ErrBodyNotAllowed
	case r.sent:
		return r.w.Write(p)
	case int64(r.body.Len())+int64(len(p)) <= r.limit:
		return r.body.Write(p)
	}
	if err := r.begin(); err != nil {
		return 0, err
	}
	return r.w.Write(p)
}

// begin sends what there is of the answer.
func (r *recorder) begin() error {
	r.sent = true
	r.sniff()
	replaceHeader(r.w.Header(), r.answered)
	r.w.WriteHeader(r.status)
	if r.body.Len() == 0 {
		return nil
	}
	_, err := r.w.Write(r.body.Bytes())
	r.body = bytes.Buffer{} // it may be large, and the handler may go on for long
	return err
}

// finish sends the answer, or what is left of it, once the handler is done.
func (r *recorder) finish() {
	r.WriteHeader(http.StatusOK)
	if !r.sent {
		if bodyAllowed(r.status) && !r.trailed() {
			r.answered.Set("Content-Length", strconv.Itoa(r.body.Len()))
		}
		r.begin() // the client may have gone, and nobody else is to be told
	}
	// What has been set since the status was written counts for trailers alone.
	replaceHeader(r.w.Header(), r.header)
}

// trailed is whether trailers follow the body.
func (r *recorder) trailed() bool {
	for name := range r.header {
		if name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// sniff adds the type that net/http would guess, so that it is stored too.
func (r *recorder) sniff() {
	_, typed := r.answered["Content-Type"]
	if !typed && r.body.Len() > 0 && r.answered.Get("Content-Encoding") == "" {
		r.answered.Set("Content-Type", http.DetectContentType(r.body.Bytes()))
	}
}

// response is the answer as it is stored, once the handler is done. complete is
// false if there was more of it than that.
func (r *recorder) response(listed map[string]bool) (response Response, complete bool) {
	r.WriteHeader(http.StatusOK)
	r.sniff()
	return Response{r.status, storedHeader(r.before, r.answered, listed), r.body.Bytes()}, !r.sent
}

// FlushError says that there is none.
func (r *recorder) FlushError() error { return http.ErrNotSupported }

// SetReadDeadline implements what http.ResponseController asks for.
func (r *recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(r.w).SetReadDeadline(t)
}

// SetWriteDeadline implements what http.ResponseController asks for.
func (r *recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(r.w).SetWriteDeadline(t)
}
