package storetest

import (
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

// list is which of keys are listed, and in which state.
func (t *trial) list(lister idempotency.Lister, f idempotency.Filter, keys map[string]idempotency.Key) map[string]idempotency.State {
	t.Helper()
	found := map[string]idempotency.State{}
	for r, err := range lister.List(t.Context(), f) {
		t.must(err)
		for name, k := range keys {
			if r.Key == k {
				found[name] = r.State
			}
		}
	}
	return found
}

func listed(t *trial) {
	lister, ok := t.Store.(idempotency.Lister)
	if !ok {
		return // it says of itself that it cannot
	}
	keys := map[string]idempotency.Key{}
	as := func(name string, after time.Duration, prepare func()) {
		t.key = newKey("orders")
		keys[name] = t.key
		t.claim("a", idempotency.Created)
		prepare()
		t.elapse(after)
	}
	as("running", time.Minute, func() {})
	as("lapsed", lease+time.Minute, func() {})
	as("done", lease+time.Minute, func() {
		_, err := t.complete("a", "o1001")
		t.must(err)
	})
	as("pausing", time.Minute, func() { t.must(t.unknown("a")) })
	as("unknown", pause+time.Minute, func() { t.must(t.unknown("a")) })
	as("expired", retention+time.Hour, func() {})

	const (
		p = idempotency.StateInProgress
		s = idempotency.StateSuccess
		u = idempotency.StateUnknown
	)
	for _, c := range []struct {
		filter idempotency.Filter
		want   map[string]idempotency.State
	}{
		{idempotency.Filter{}, map[string]idempotency.State{"running": p, "lapsed": p, "done": s, "pausing": u, "unknown": u}},
		{idempotency.Filter{State: u}, map[string]idempotency.State{"pausing": u, "unknown": u}},
		{idempotency.Filter{State: s}, map[string]idempotency.State{"done": s}},
		{idempotency.Filter{Due: true}, map[string]idempotency.State{"lapsed": p, "unknown": u}},
		{idempotency.Filter{State: p, Due: true}, map[string]idempotency.State{"lapsed": p}},
	} {
		got := t.list(lister, c.filter, keys)
		if len(got) != len(c.want) {
			t.Errorf("%+v: %v, want %v", c.filter, got, c.want)
		}
		for name, state := range c.want {
			if got[name] != state {
				t.Errorf("%+v: %s is %v, want %v", c.filter, name, got[name], state)
			}
		}
	}
	for range lister.List(t.Context(), idempotency.Filter{}) {
		break // a caller who has seen enough
	}
}

func resolved(t *trial) {
	resolver, ok := t.Store.(idempotency.Resolver)
	if !ok {
		return // it says of itself that it cannot
	}
	resolve := func(attempt int64, happened bool) error {
		return resolver.Resolve(t.Context(), idempotency.Resolution{
			Key: t.key, Attempt: attempt, Happened: happened, Response: []byte("by hand"), Retention: retention,
		})
	}
	t.is("no record", resolve(1, true), idempotency.ErrNotUnknown)
	t.claim("a", idempotency.Created)
	t.unchanged(func() { t.is("in progress", resolve(1, true), idempotency.ErrNotUnknown) })
	t.must(t.unknown("a"))
	t.unchanged(func() { t.is("another attempt", resolve(2, false), idempotency.ErrNotUnknown) })
	t.must(resolve(1, true))
	if c := t.claim("b", idempotency.Replay); string(c.Record.Response) != "by hand" || c.Record.Reason != "" {
		t.Errorf("replayed: %+v", c.Record)
	}
	t.unchanged(func() {
		_, err := t.complete("a", "late")
		t.is("its owner, late", err, idempotency.ErrLeaseLost)
		t.is("success", resolve(1, false), idempotency.ErrNotUnknown)
	})

	t.key = newKey("orders")
	t.claim("a", idempotency.Created)
	t.must(t.unknown("a"))
	t.must(resolve(1, false))
	t.claim("b", idempotency.Created)
}
