package httpguard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

const (
	replayedHeader = "Idempotent-Replayed"
	degradedHeader = "Idempotency-Degraded"
)

// Idempotent is a middleware that runs a request with an Idempotency-Key once, and
// answers each retry with what came of it. It is aligned with
// draft-ietf-httpapi-idempotency-key-header-07, which is a draft and has expired,
// and with RFC 9457 in its own answers.
//
// The handler's answer is kept back until it is stored, so that whatever a client
// has seen can be replayed. It therefore cannot be flushed or hijacked; requests
// without a key are passed on as they are.
//
// A client that hangs up does not stop the handler. Its context ends after the guard's
// ExecTimeout, and with [idempotency.ErrLeaseLost] as cause when the lease is lost.
// A handler that returns then without having answered is taken to be ambiguous.
//
// A panic goes on after the record has been marked. What answers mean: [EffectOf].
//
// Authentication and authorization come before it, so that nobody is shown an answer who
// may not see it any more; so does compression. What reads bodies comes behind it: one that
// has been read before is refused with 500, save a form with a url-encoded body. The error names the field of cfg that is not
// valid and what would be right.
func Idempotent(guard *idempotency.Guard, cfg IdempotentConfig) (func(http.Handler) http.Handler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if guard == nil {
		return nil, errors.New("guard is nil: want one of idempotency.New")
	}
	i := &idempotent{IdempotentConfig: cfg, guard: guard, listed: headerSet(cfg.StoreHeaders...)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { i.serve(w, r, next) })
	}, nil
}

type idempotent struct {
	IdempotentConfig
	guard  *idempotency.Guard
	listed map[string]bool // StoreHeaders
}

func (i *idempotent) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	lines := r.Header.Values(keyHeader)
	if !slices.Contains(i.Methods, r.Method) || len(lines) == 0 && !i.Required {
		next.ServeHTTP(w, r)
		return
	}
	if len(lines) == 0 {
		keyMissing().write(w, i.DocsURL)
		return
	}
	value, err := parseKey(lines, i.StrictSyntax)
	if err == nil && i.KeyPattern != nil && !i.KeyPattern.MatchString(value) {
		err = fmt.Errorf("it does not match %s", i.KeyPattern)
	}
	if err != nil {
		keyInvalid(err).write(w, i.DocsURL)
		return
	}
	principal := i.Principal(r)
	if principal == "" {
		noPrincipal().write(w, i.DocsURL)
		return
	}
	body, r, err := takeBody(w, r, i.MaxBody)
	if err != nil {
		bodyProblem(err).write(w, i.DocsURL)
		return
	}
	request := idempotency.Request{
		Key:         idempotency.Key{Operation: shortened(i.Operation(r)), Principal: shortened(principal), Value: value},
		RunDegraded: i.RunDegraded,
	}
	if request.Fingerprint, request.Alternates, err = i.fingerprints(r, body); err != nil {
		notCanonical(err).write(w, i.DocsURL)
		return
	}
	i.once(w, r, request, next)
}

func (i *idempotent) fingerprints(r *http.Request, body []byte) (current fingerprint.Print, older []fingerprint.Print, err error) {
	prints := make([]fingerprint.Print, len(i.Schemes))
	for n, scheme := range i.Schemes {
		if prints[n], err = i.Fingerprint(scheme, r, body); err != nil {
			return "", nil, err
		}
	}
	return prints[0], prints[1:], nil
}

// shortened is text as a part of a key, which has 255 bytes at most. What looks as if
// it had been shortened is, so that nobody can take a name that stands for another's.
func shortened(text string) string {
	const kept, mark = 128, " ~"
	looksSo := len(text) == kept+len(mark)+2*sha256.Size && text[kept:kept+len(mark)] == mark
	if len(text) <= 255 && !looksSo {
		return text
	}
	return fmt.Sprintf("%s%s%x", text[:kept], mark, sha256.Sum256([]byte(text)))
}

// once runs next, or answers with what came of it before, or with why neither can be.
func (i *idempotent) once(w http.ResponseWriter, r *http.Request, request idempotency.Request, next http.Handler) {
	rec := newRecorder(w, i.MaxResponse)
	result, info, err := i.guard.Do(r.Context(), request, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		run := &Run{Execution: ex}
		if ex.Degraded {
			rec.Header().Set(degradedHeader, "true")
		}
		next.ServeHTTP(rec, r.WithContext(context.WithValue(ctx, runKey{}, run)))
		return i.outcome(ctx, run, rec)
	})
	switch {
	case info.Ran && err == nil && info.StoreErr != nil && i.StrictPersist && !rec.sent:
		notStored().write(w, i.DocsURL)
	case info.Ran:
		rec.finish()
	case err == nil:
		i.replay(w, r, result)
	default:
		i.refusal(r, request.Key, result, err).write(w, i.DocsURL)
	}
}

// outcome is what came of a run that has returned, for the guard.
func (i *idempotent) outcome(ctx context.Context, run *Run, rec *recorder) (idempotency.Result, error) {
	effect := run.effect
	if rec.status == 0 && ctx.Err() != nil {
		// It has given up, which is no success although net/http would say 200.
		i.unknown("", 0).write(rec, i.DocsURL)
		if effect == Final || effect == 0 {
			effect = Ambiguous
		}
	}
	rec.WriteHeader(http.StatusOK)
	if effect == 0 {
		effect = i.Decide(rec.status)
	}
	switch effect {
	case Final:
		return i.stored(rec), nil
	case NoEffect:
		return idempotency.Result{}, idempotency.NoEffect(fmt.Errorf("answered %d", rec.status))
	}
	if cause := context.Cause(ctx); cause != nil {
		return idempotency.Result{}, fmt.Errorf("answered %d: %w", rec.status, cause)
	}
	return idempotency.Result{}, fmt.Errorf("answered %d", rec.status)
}

// stored is the answer as it is stored, or a tombstone of it if it is too long.
func (i *idempotent) stored(rec *recorder) idempotency.Result {
	response, complete := rec.response(i.listed)
	if i.Redact != nil {
		response.Body = bytes.Clone(response.Body) // the client gets what the handler wrote
		i.Redact(&response)
	}
	result := response.Result()
	if complete && int64(len(result.Response)) <= i.MaxResponse {
		return result
	}
	tombstone := Response{Status: response.Status, Header: http.Header{}}
	if location := response.Header.Get("Location"); location != "" {
		tombstone.Header.Set("Location", location)
	}
	result = tombstone.Result()
	result.Tombstone = true
	return result
}

// replay answers with what is stored.
func (i *idempotent) replay(w http.ResponseWriter, r *http.Request, result idempotency.Result) {
	response, err := responseOf(result)
	if err != nil {
		notReplayable("").write(w, i.DocsURL)
		return
	}
	if i.Current != nil {
		if response, err = i.Current(r, response); err != nil {
			noStore().write(w, i.DocsURL)
			return
		}
	}
	// What a Reconciler or a transaction of the handler's has stored was not looked at.
	response.Header = storedHeader(nil, response.Header, i.listed)
	w.Header().Set(replayedHeader, "true")
	response.Send(w) // the client may have gone
}
