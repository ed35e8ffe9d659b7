package httpguard

import (
	"context"
	"net/http"

	"github.com/quorumlock/quorumlock/idempotency"
)

// Effect is what an answer means for the key of its request.
type Effect uint8

const (
	// Final: the answer is what came of it. It is stored, and replayed from then on.
	Final Effect = iota + 1

	// NoEffect: nothing has been changed anywhere. The key is freed, and a retry
	// runs.
	NoEffect

	// Ambiguous: it may have had its effect. The key is not freed, and the next
	// attempt asks the guard's Reconciler before anything else.
	Ambiguous
)

// EffectOf is what an answer with this status means, unless the handler or
// IdempotentConfig.Decide says otherwise. 401, 403, 408, 425 and 429 are not about the
// intent, and have had no effect. Of 5xx nobody knows. The rest is final, other
// refusals included: a retry gets them again.
func EffectOf(status int) Effect {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return NoEffect
	}
	if status >= 500 {
		return Ambiguous
	}
	return Final
}

// Run is one run of a handler behind [Idempotent]. It is valid until the handler
// returns, and for use by one goroutine.
type Run struct {
	*idempotency.Execution
	effect Effect // 0 if the handler has not said
}

// RunOf is the run that a handler with this context is, and nil if its request has
// no key. Degraded, in it, says that nothing but the handler's database keeps this
// from being done twice.
func RunOf(ctx context.Context) *Run {
	run, _ := ctx.Value(runKey{}).(*Run)
	return run
}

type runKey struct{}

// Means says what the answer will mean, whatever its status: Final once the effect
// has been committed, so that a 500 that comes after it is not taken for a reason to
// run again; NoEffect with an error that came before anything was changed. The
// last call counts. A panic is ambiguous all the same. On nil it does nothing.
func (r *Run) Means(e Effect) {
	if r != nil {
		r.effect = e
	}
}
