package idempotency

import "context"

// Lookup returns the record of k and, if that is SUCCESS, its result. It is for
// status pages and operators. Errors: [ErrNotFound], [ErrNotReplayable] beside a
// record whose result cannot be read, [ErrStoreUnavailable], [ErrInvalid] for a key
// that is none, and that of ctx if it ended before the store had answered.
func (g *Guard) Lookup(ctx context.Context, k Key) (Record, Result, error) {
	if err := k.Validate(); err != nil {
		return Record{}, Result{}, err
	}
	var record Record
	err := g.step(ctx, k.Operation, "get", g.thrice(), func(ctx context.Context) (err error) {
		record, err = g.store.Get(ctx, k)
		return err
	})
	if err != nil || record.State != StateSuccess {
		return record, Result{}, err
	}
	result, err := g.config.Seal.load(k, record.Response)
	return record, result, err
}

// Resolve enters an operator's decision about a record that is UNKNOWN with this
// attempt: [Happened] makes it SUCCESS, [DidNotHappen] frees the key. The same
// holds for the decision as for a [Reconciler]'s. Errors: [ErrNotUnknown] if it is
// not, or no longer, as the operator saw it, [ErrInvalid] for CannotTell, a key
// that is none or a store that is no [Resolver], and [ErrStoreUnavailable] or that of
// ctx, after which Lookup tells whether it has been entered.
func (g *Guard) Resolve(ctx context.Context, k Key, attempt int64, v Verdict) error {
	if err := k.Validate(); err != nil {
		return err
	}
	resolver, ok := g.store.(Resolver)
	if !ok {
		return invalid("the store cannot resolve: %T", g.store)
	}
	if v.kind == cannotTell {
		return invalid("the decision is %v: want Happened or DidNotHappen", v)
	}
	r := Resolution{Key: k, Attempt: attempt, Happened: v.kind == happened, Retention: g.config.Retention}
	if r.Happened {
		r.Response = g.config.Seal.store(k, v.result)
	}
	return g.step(ctx, k.Operation, "resolve", patience{1, g.config.StoreTimeout}, func(ctx context.Context) error {
		return resolver.Resolve(ctx, r)
	})
}
