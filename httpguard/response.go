package httpguard

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/quorumlock/quorumlock/idempotency"
)

// Response is a handler's answer as it is stored and replayed.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Result is r in the form in which an [idempotency.Guard] stores it: what a Reconciler
// returns with [idempotency.Happened], and what a handler completes its record
// with in a transaction of its own. Control characters in headers become spaces.
func (r Response) Result() idempotency.Result {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d\r\n", format, r.Status)
	header := make(http.Header, len(r.Header))
	for name, values := range r.Header {
		for _, value := range values {
			header[name] = append(header[name], withoutControl(value))
		}
	}
	header.Write(&b) // in the order of names; into memory, so it cannot fail
	b.WriteString("\r\n")
	b.Write(r.Body)
	return idempotency.Result{Response: b.Bytes()}
}

// withoutControl: a header that has control characters is not read back.
func withoutControl(value string) string {
	b := []byte(value)
	for i, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}

// Send answers with r, as a handler does. It changes nothing of r. The error
// is w's.
func (r Response) Send(w http.ResponseWriter) error {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	if bodyAllowed(r.Status) {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.Body)))
		if _, typed := w.Header()["Content-Type"]; !typed {
			w.Header()["Content-Type"] = nil // there was none, and none is to be guessed
		}
	}
	w.WriteHeader(r.Status)
	if len(r.Body) == 0 {
		return nil
	}
	_, err := w.Write(r.Body)
	return err
}

// format is of what Result writes: it resembles a response of HTTP/1.1.
const format = "response/1"

// responseOf is the Response that is stored in result.
func responseOf(result idempotency.Result) (Response, error) {
	text := textproto.NewReader(bufio.NewReader(bytes.NewReader(result.Response)))
	line, err := text.ReadLine()
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", idempotency.ErrNotReplayable, err)
	}
	var r Response
	if n, _ := fmt.Sscanf(line, format+" %d", &r.Status); n != 1 || r.Status < 200 || r.Status > 999 {
		return Response{}, fmt.Errorf("%w: it begins with %q: want %s and a status", idempotency.ErrNotReplayable, line, format)
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", idempotency.ErrNotReplayable, err)
	}
	r.Header = http.Header(header)
	r.Body, err = io.ReadAll(text.R)
	return r, err
}

// bodyAllowed is whether a response of this status may have a body: RFC 9110,
// section 6.4.1.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
