package httpguard

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// defaultDocs has a heading for each problem's name.
const defaultDocs = "https://github.com/quorumlock/quorumlock/blob/main/docs/http.md"

// problem is an answer that is not the handler's: problem details as in RFC 9457,
// which for programs differ in their type and for people in their detail.
type problem struct {
	status     int
	name       string // the fragment of its type
	title      string
	detail     string // says whether to send the request again
	retryAfter time.Duration
	location   string // where the result is or will be, if there is such a place
}

// write answers with p. docs is the page that the type is on.
func (p problem) write(w http.ResponseWriter, docs string) {
	kind := docs + "#" + p.name
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{kind, p.title, p.status, p.detail})
	if err != nil {
		panic(err) // strings and a number
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.status < 400 {
		h.Set("Content-Type", "application/json") // nothing has gone wrong
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Add("Link", "<"+kind+`>; rel="describedby"`)
	if p.location != "" {
		h.Set("Location", p.location)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(wholeSeconds(p.retryAfter)))
	}
	if p.status == http.StatusRequestEntityTooLarge {
		h.Set("Connection", "close") // the rest of the body is not going to be read
	}
	w.WriteHeader(p.status)
	w.Write(body)
}

// wholeSeconds rounds up, so that who waits that long does not come too early.
func wholeSeconds(d time.Duration) int {
	return max(1, int((min(d, math.MaxInt64-time.Second)+time.Second-1)/time.Second))
}

// docsURL is the page that problems are explained on.
func docsURL(configured string) (string, error) {
	if configured == "" {
		return defaultDocs, nil
	}
	u, err := url.Parse(configured)
	if err != nil || !u.IsAbs() || u.Fragment != "" {
		return "", fmt.Errorf("DocsURL is %q: want an absolute URL without a fragment, such as %s", configured, defaultDocs)
	}
	return u.String(), nil
}

func noPrincipal() problem {
	return problem{
		status: http.StatusForbidden, name: "principal-missing", title: "Nobody to keep this for",
		detail: "The request has no user. Log in and send it again.",
	}
}

func tooLargeProblem(limit int64) problem {
	return problem{
		status: http.StatusRequestEntityTooLarge, name: "body-too-large", title: "The body is too large",
		detail: fmt.Sprintf("The body may have %d bytes. Nothing has been done; do not send it again as it is.", limit),
	}
}
