package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

// IdempotentConfig says whose keys Idempotent takes, which requests are the same,
// and what is stored of an answer. All but Principal may be left out.
type IdempotentConfig struct {
	// Principal is who sends a request: an id that authentication, which comes
	// before, has put into the request's context. Two of them never meet, even with
	// the same key. Empty means nobody, and the answer is 403.
	Principal func(*http.Request) string

	// Operation is what is asked for, and part of the key: the same key for two
	// operations is two intents. nil means the method and the path, as in "POST
	// /orders". It also labels what idempotency.Trace is told; where paths contain
	// ids, r.Pattern makes a better label.
	Operation func(*http.Request) string

	// Methods are those that take a key; nil means POST and PATCH. Others pass.
	Methods []string

	// Required refuses requests without a key. Otherwise they pass, unguarded.
	Required bool

	// StrictSyntax takes only keys in quotes, which is what the draft says. Otherwise
	// a key without them is the same key.
	StrictSyntax bool

	// KeyPattern is what a key, without quotes, must match, such as ^.{16,}$: ^ and $
	// make it the whole key. nil means any of 1 to 255 printable characters. Whoever
	// accepts short keys has users who use them twice.
	KeyPattern *regexp.Regexp

	// Fingerprint tells requests under one key apart; nil means [Fingerprint]. It is
	// called for each of Schemes, with the request as it came and its body. An error
	// is the client's fault and answered 400.
	Fingerprint func(s *fingerprint.Scheme, r *http.Request, body []byte) (fingerprint.Print, error)

	// Schemes make fingerprints: the first those that are stored, and all of them
	// those that stored ones may equal, which is how a version is replaced. nil means one
	// of fingerprint.Config{}.
	Schemes []*fingerprint.Scheme

	// Decide is what an answer with this status means; nil means [EffectOf].
	// What the handler says itself (see [Run.Means]) comes first.
	Decide func(status int) Effect

	// Statuses are those of the IETF draft or of an older custom.
	Statuses Statuses

	// StatusURL is where the state of what r asks for can be seen, for a client that
	// finds it in progress; nil means nowhere.
	StatusURL func(r *http.Request, k idempotency.Key) string

	// Current makes the answer that is shown of the one that is stored: for an API
	// whose contract says that a retry shows the order as it is now. Its error is
	// answered 503. nil means that the stored one is shown, byte for byte.
	Current func(r *http.Request, stored Response) (Response, error)

	// RunDegraded runs handlers also while the store gives no answer, with
	// Run.Degraded set and Idempotency-Degraded: true in the answer. It is for
	// handlers that a unique key in the database keeps from doing anything twice.
	// Otherwise the answer is 503 then, and nothing runs.
	RunDegraded bool

	// StrictPersist answers 503 where a handler has run and its answer could not be
	// stored, unless it was longer than MaxResponse and has gone out already.
	// Otherwise the client gets that answer, and a retry finds the key in progress until
	// its lease ends and the Reconciler is asked. It cannot be combined with
	// RunDegraded.
	StrictPersist bool

	// MaxBody is how many bytes a request's body may have; 0 means 1 MiB. More is
	// answered 413.
	MaxBody int64

	// MaxResponse is how many bytes of an answer are stored, headers included; 0 means
	// 1 MiB, as in the guard's Config, which should have the same. Of a longer one the client gets all, as it is
	// written, and a retry is told that it has been done and where (Location).
	MaxResponse int64

	// StoreHeaders are headers to store besides those that describe the result:
	// Content-Type, -Language, -Encoding, -Disposition and -Location, Location, ETag,
	// Last-Modified, Link, Vary. What belongs to a connection, a moment, a trace or a
	// login is never stored, though it is listed: Set-Cookie, Date and the like.
	StoreHeaders []string

	// Redact takes out of an answer what must not be stored, such as the number of a
	// card. The first client still gets it, retries do not. nil means that nothing is
	// taken out. What is stored can also be sealed: idempotency.Config.Seal.
	Redact func(*Response)

	// DocsURL is the page that the types of problems are on, each under its name;
	// empty means this project's.
	DocsURL string
}

// Statuses is which statuses a client gets that meets its own key.
type Statuses uint8

const (
	// Draft07 has those of draft-ietf-httpapi-idempotency-key-header-07: 409 in
	// progress, 422 for a key that was used for another request.
	Draft07 Statuses = iota

	// Accepted has 202 in progress, with the StatusURL, and 409 for a key that was
	// used for another request.
	Accepted
)

// withDefaults is c with its defaults, or what is wrong with it.
func (c IdempotentConfig) withDefaults() (IdempotentConfig, error) {
	if c.Operation == nil {
		c.Operation = func(r *http.Request) string { return r.Method + " " + r.URL.EscapedPath() }
	}
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if c.Fingerprint == nil {
		c.Fingerprint = Fingerprint
	}
	if c.Schemes == nil {
		scheme, err := fingerprint.New(fingerprint.Config{})
		if err != nil {
			return c, err
		}
		c.Schemes = []*fingerprint.Scheme{scheme}
	}
	if c.Decide == nil {
		c.Decide = EffectOf
	}
	if c.StatusURL == nil {
		c.StatusURL = func(*http.Request, idempotency.Key) string { return "" }
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = 1 << 20
	}
	var err error
	if c.DocsURL, err = docsURL(c.DocsURL); err != nil {
		return c, fmt.Errorf("IdempotentConfig.%w", err)
	}
	return c, c.validate()
}

// validate says what is wrong with a config, defaults filled in.
func (c IdempotentConfig) validate() error {
	switch {
	case c.Principal == nil:
		return errors.New("IdempotentConfig.Principal is nil: want who sends a request, as one user's key must not get another's answer")
	case c.Statuses > Accepted:
		return fmt.Errorf("IdempotentConfig.Statuses is %d: want Draft07 or Accepted", c.Statuses)
	case c.RunDegraded && c.StrictPersist:
		return errors.New("IdempotentConfig.RunDegraded and StrictPersist are set: want one, as what runs without the store is not stored")
	case c.MaxBody < 0:
		return fmt.Errorf("IdempotentConfig.MaxBody is %d: want a number of bytes above 0, such as 1048576", c.MaxBody)
	case c.MaxResponse < 0:
		return fmt.Errorf("IdempotentConfig.MaxResponse is %d: want a number of bytes above 0, such as 1048576", c.MaxResponse)
	case len(c.Schemes) == 0:
		return errors.New("IdempotentConfig.Schemes is empty: want nil for the default, or a scheme")
	}
	for _, method := range c.Methods {
		if changesNothing(method) {
			return fmt.Errorf("IdempotentConfig.Methods has %s: want methods that change something", method)
		}
	}
	return nil
}

// Fingerprint is what tells requests under one key apart by default: the method,
// the path, the query, the type of the body, and the body, by its value if it is
// JSON; one that is compressed is compared as it came. Headers, such as those of a
// trace, don't count. The error, for JSON that is not strict, is a
// [*fingerprint.InputError].
func Fingerprint(s *fingerprint.Scheme, r *http.Request, body []byte) (fingerprint.Print, error) {
	kind := mediaType(r.Header.Get("Content-Type"))
	if len(body) > 0 && isJSON(kind) {
		canonical, err := fingerprint.Canonical(nil, body, fingerprint.Limits{Bytes: len(body)})
		switch encoding := r.Header.Get("Content-Encoding"); {
		case err == nil:
			body = canonical
		case encoding != "":
			kind += " " + encoding
		default:
			return "", err
		}
	}
	return s.Sum([]byte(r.Method), []byte(r.URL.EscapedPath()), []byte(sortedQuery(r.URL.RawQuery)), []byte(kind), body), nil
}
