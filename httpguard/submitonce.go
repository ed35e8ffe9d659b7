package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// SubmitConfig says how SubmitOnce tells submissions apart and what it does with
// the second of two. All but Principal may be left out.
type SubmitConfig struct {
	// Principal is who sends a request: an id that authentication, which comes
	// before, has put into the request's context. Two users never hinder each
	// other. Empty means nobody, and the answer is 403.
	//
	// The address of the client is no good principal: a whole office has one
	// address, and a telephone has several in a minute. Who wants it all the same
	// returns it here.
	Principal func(*http.Request) string

	// TTL is how long a submission is guarded at most, unless it is renewed; 0
	// means 5 s. When the process dies, the user can submit again that much later.
	TTL time.Duration

	// Window guards for the whole TTL from when a request came, whatever becomes
	// of it, so that also what is sent again after the answer is refused. Otherwise
	// a submission is guarded until its handler is done.
	Window bool

	// Renew guards until the handler is done, also where that takes longer than
	// the TTL. It cannot be combined with Window.
	Renew bool

	// RequireLock answers 503 where the lock cannot be asked. Otherwise the request
	// is let through, as the guard only saves people from their own haste, and the
	// service is there for the rest of the time. Either way Decided is told.
	RequireLock bool

	// MaxBody is how many bytes a body may have; 0 means 1 MiB. More is answered
	// 413.
	MaxBody int64

	// Intent is what of a body says what is asked for, and tells one submission from
	// another; nil means all of it, by its value if it is JSON. Set it where bodies
	// carry what differs from click to click, such as the time.
	Intent func(r *http.Request, body []byte) []byte

	// Message is what the second of two is told; empty means "Too fast: this has
	// just been sent, and is being worked on. Do not send it again."
	Message string

	// Keyed guards requests with an Idempotency-Key too. Otherwise they pass, for
	// [Idempotent] to answer a duplicate with the first one's result rather than with
	// 429. Set it where no Idempotent takes them, or not with this method; behind one
	// it stops a submission that comes twice with two keys.
	Keyed bool

	// DocsURL is the page that the types of problems are on, each under its name;
	// empty means this project's.
	DocsURL string

	// Decided, if not nil, is told what became of each request that was to be
	// guarded, before it is answered: for counting, and for an alarm when err is
	// that the lock cannot be asked. It may be called concurrently and must not
	// keep r.
	Decided func(r *http.Request, d Decision, err error)
}

// Decision is what SubmitOnce does with a request.
type Decision uint8

const (
	// Admitted: it holds the lock, and the handler runs.
	Admitted Decision = iota
	// Refused: the same is being worked on. 429.
	Refused
	// Bypassed: the lock could not be asked, and the handler runs unguarded.
	Bypassed
	// Unavailable: the lock could not be asked, and RequireLock is set. 503.
	Unavailable
	// Abandoned: the client went while the lock was asked, and the handler does
	// not run. The first request of a double click ends so in many a browser, and
	// must not get past the guard.
	Abandoned
)

// String is one lower-case word, to label metrics with.
func (d Decision) String() string {
	switch d {
	case Admitted:
		return "admitted"
	case Refused:
		return "refused"
	case Bypassed:
		return "bypassed"
	case Unavailable:
		return "unavailable"
	case Abandoned:
		return "abandoned"
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}

const (
	defaultTTL     = 5 * time.Second
	defaultMaxBody = 1 << 20
	defaultMessage = "Too fast: this has just been sent, and is being worked on. Do not send it again."
)

// withDefaults is c with its defaults, or what is wrong with it.
func (c SubmitConfig) withDefaults() (SubmitConfig, error) {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Intent == nil {
		c.Intent = wholeBody
	}
	if c.Message == "" {
		c.Message = defaultMessage
	}
	if c.Decided == nil {
		c.Decided = func(*http.Request, Decision, error) {}
	}
	var err error
	switch c.DocsURL, err = docsURL(c.DocsURL); {
	case err != nil:
		return c, fmt.Errorf("SubmitConfig.%w", err)
	case c.Principal == nil:
		return c, errors.New("SubmitConfig.Principal is nil: want who sends a request, as one user's submissions must not hinder another's")
	case c.TTL < 0:
		return c, fmt.Errorf("SubmitConfig.TTL is %v: want a time above 0, such as 5s", c.TTL)
	case c.MaxBody < 0:
		return c, fmt.Errorf("SubmitConfig.MaxBody is %d: want a number of bytes above 0, such as 1048576", c.MaxBody)
	case c.Window && c.Renew:
		return c, errors.New("SubmitConfig.Window and Renew are set: want one, as a window has a fixed length")
	}
	return c, nil
}

// SubmitOnce is a middleware that lets the same submission in once at a time: of
// two requests of one user with the same method, path, query and body, however
// close to each other and on whichever instances of the service, one is handled,
// and the other is answered 429 at once, as problem details with Retry-After.
//
// JSON bodies are the same if they have the same value, others if they have the
// same bytes. What reads bodies comes behind it: one that has been read before is
// refused with 500, save a form with a url-encoded body. Requests that change nothing (GET, HEAD, OPTIONS and TRACE) pass.
//
// The lock is released as soon as the handler has returned or panicked, beside
// the answer, which does not wait for it; the locker's Close does. So the same that
// comes in the very moment of the answer may still be refused. Only redlock.ErrHeld
// refuses a request: where the lock cannot be asked, it is let through, unless
// RequireLock is set.
//
// It stops what comes at the same time: double clicks, eager proxies. It does not
// stop a repetition after the answer was lost: that takes [Idempotent], or a
// unique key in the database.
//
// The error names the field that is not valid and what would be right.
func SubmitOnce(locker Locker, cfg SubmitConfig) (func(http.Handler) http.Handler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if locker == nil {
		return nil, errors.New("locker is nil: want a lock, such as httpguard.Quorum(locker)")
	}
	s := &submitOnce{SubmitConfig: cfg}
	if cfg.Window {
		// It is released when the window ends. A lease that ended at the same time
		// would be reported as lost.
		s.margin = cfg.TTL/8 + 50*time.Millisecond
	}
	if s.locker, err = locker.WithTTL(cfg.TTL + s.margin); err != nil {
		return nil, fmt.Errorf("SubmitConfig.TTL is %v: %w", cfg.TTL, err)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, next) })
	}, nil
}

type submitOnce struct {
	SubmitConfig
	locker Locker
	margin time.Duration // by which a lease is longer than what it guards
}

func (s *submitOnce) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if changesNothing(r.Method) || !s.Keyed && len(r.Header.Values(keyHeader)) > 0 {
		next.ServeHTTP(w, r)
		return
	}
	user := s.Principal(r)
	if user == "" {
		noPrincipal().write(w, s.DocsURL)
		return
	}
	body, r, err := takeBody(w, r, s.MaxBody)
	if err != nil {
		bodyProblem(err).write(w, s.DocsURL)
		return
	}
	key := submitKey(user, r, s.Intent(r, body))
	lease, err := s.locker.TryAcquire(r.Context(), key)
	d := s.decide(r.Context(), err)
	if d == Admitted { // from here on, as Decided may panic
		defer s.guard(r.Context(), lease)()
	}
	s.Decided(r, d, err)
	switch d {
	case Refused:
		s.tooFast(s.locker.Remaining(r.Context(), key)).write(w, s.DocsURL)
	case Unavailable, Abandoned:
		lockDown().write(w, s.DocsURL)
	case Bypassed, Admitted:
		next.ServeHTTP(w, r)
	}
}

// decide is what to do with a request whose attempt at the lock ended with err.
func (s *submitOnce) decide(ctx context.Context, err error) Decision {
	switch {
	case err == nil:
		return Admitted
	case errors.Is(err, redlock.ErrHeld):
		return Refused
	case ctx.Err() != nil:
		return Abandoned
	case s.RequireLock:
		return Unavailable
	}
	return Bypassed
}

// guard keeps the lease for as long as its submission is guarded. The returned
// function is called when the handler is done.
func (s *submitOnce) guard(ctx context.Context, lease Lease) (done func()) {
	// The locker waits for it: its Close returns when every lease is released.
	release := func() { lease.Release(ctx) }
	if s.Window {
		time.AfterFunc(s.TTL, release)
		return func() {}
	}
	if s.Renew {
		lease.KeepAlive()
	}
	return func() { go release() }
}

func (s *submitOnce) tooFast(remaining time.Duration) problem {
	return problem{
		status: http.StatusTooManyRequests, name: "submitted-twice", title: "The same is being worked on",
		detail: s.Message, retryAfter: max(time.Second, remaining-s.margin),
	}
}

func lockDown() problem {
	return problem{
		status: http.StatusServiceUnavailable, name: "guard-unavailable", title: "The guard against double submission is out of reach",
		detail: "Nothing has been done; send it again later.", retryAfter: time.Second,
	}
}

// changesNothing is whether method is safe: RFC 9110, section 9.2.1.
func changesNothing(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
