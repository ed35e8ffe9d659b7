package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

const (
	walks = 40
	steps = 60
)

// A walk is calls in any order, by owners who crash, come back late and send
// again what was answered, with time going by and records being lost.
type walk struct {
	*trial
	model
	draw   *rand.Rand
	owners []idempotency.Token
	log    []string // what was done, and what came of it
}

func anyOrderOfCallsIsAsTheModelSays(t *trial) {
	for seed := range uint64(walks) {
		t.key = newKey("orders")
		w := &walk{trial: t, draw: rand.New(rand.NewPCG(seed, 0))}
		for range steps {
			w.step()
			w.compare()
			if t.Failed() {
				t.Fatalf("walk %d:\n%s", seed, strings.Join(w.log, "\n"))
			}
		}
	}
}

// owner is a new one, or one of the last three.
func (w *walk) owner() idempotency.Token {
	if n := len(w.owners); n > 0 && w.draw.IntN(3) > 0 {
		return w.owners[n-1-w.draw.IntN(min(n, 3))]
	}
	w.owners = append(w.owners, idempotency.Token(fmt.Sprint("owner ", len(w.owners))))
	return w.owners[len(w.owners)-1]
}

func (w *walk) did(got, want any, format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...)+fmt.Sprintf(": %v", got))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("after %s: %v, want %v", fmt.Sprintf(format, args...), got, want)
	}
}

// step does one thing to the store and to the model; some it does twice, as a
// call whose answer was lost.
func (w *walk) step() {
	owner, kind := w.owner(), w.draw.IntN(100)
	print := printX
	if w.draw.IntN(8) == 0 {
		print = printY
	}
	reconciled, long := w.draw.IntN(2) == 0, w.draw.IntN(8) == 0
	for range 1 + w.draw.IntN(4)/3 {
		switch {
		case kind < 40:
			w.claimBoth(owner, print)
		case kind < 50:
			w.did(sentinel(w.trial.renew(owner)), sentinel(w.model.renew(owner)), "renew %s", owner)
		case kind < 62:
			done, err := w.trial.complete(owner, "of "+string(owner))
			wantDone, wantErr := w.model.complete(owner, "of "+string(owner))
			w.did([]any{done, sentinel(err)}, []any{wantDone, sentinel(wantErr)}, "complete %s", owner)
		case kind < 70:
			w.did(sentinel(w.trial.unknown(owner)), sentinel(w.model.unknown(owner)), "unknown %s", owner)
		case kind < 78:
			w.did(sentinel(w.trial.abandon(owner, reconciled)), sentinel(w.model.abandon(owner, reconciled)), "abandon %s %v", owner, reconciled)
		case kind < 82:
			w.resolveBoth(reconciled)
		case kind < 84:
			w.must(w.Forget(w.Context(), w.key))
			w.model.forget()
			w.log = append(w.log, "forget")
		default:
			// Never so that a lease, a pause or a life ends just then: sums of these
			// are minutes away from sums of those.
			d := 7 * time.Minute
			if long {
				d = 13 * time.Hour
			}
			w.must(w.Elapse(w.Context(), w.key, d))
			w.model.elapse(d)
			w.log = append(w.log, fmt.Sprint("elapse ", d))
		}
	}
}

func (w *walk) claimBoth(owner idempotency.Token, print fingerprint.Print) {
	r := w.request(owner)
	r.Fingerprint = print
	c, err := w.Store.Claim(w.Context(), r)
	w.must(err)
	outcome, attempt, state := w.model.claim(owner, print)
	if outcome == idempotency.Mismatch {
		c.Record = idempotency.Record{}
	}
	w.did([]any{c.Outcome, c.Record.Attempt, c.Record.State}, []any{outcome, attempt, state}, "claim %s %s", owner, print)
}

func (w *walk) resolveBoth(happened bool) {
	resolver, ok := w.Store.(idempotency.Resolver)
	if !ok {
		return
	}
	attempt := w.model.attempt - int64(w.draw.IntN(4)/3)
	err := resolver.Resolve(w.Context(), idempotency.Resolution{
		Key: w.key, Attempt: attempt, Happened: happened, Response: []byte("by hand"), Retention: retention,
	})
	w.did(sentinel(err), sentinel(w.model.resolve(attempt, happened)), "resolve %d %v", attempt, happened)
}

// compare compares the record itself.
func (w *walk) compare() {
	r, err := w.Store.Get(w.Context(), w.key)
	if !w.there {
		w.did(sentinel(err), idempotency.ErrNotFound, "get")
		return
	}
	w.must(err)
	w.did([]any{r.Fingerprint, r.State, r.Attempt, string(r.Response)},
		[]any{w.print, w.state, w.model.attempt, w.response}, "get")
}

// sentinel is the part of err that callers tell apart.
func sentinel(err error) error {
	for _, known := range []error{idempotency.ErrLeaseLost, idempotency.ErrNotFound, idempotency.ErrNotUnknown} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}
