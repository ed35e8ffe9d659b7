package idempotency

import "context"

// Reconciler finds out what became of earlier attempts at an intent, by asking
// the place whose word counts: the table of orders, the payment provider. It is
// asked before anything is run a second time. The record says which intent, which
// attempt this will be and when the first began.
//
// Its answer is [Happened], [DidNotHappen] or [CannotTell]; an error counts as
// CannotTell. When in doubt it is CannotTell. It runs under the lease of whoever
// has taken over, and its context ends with that. It changes nothing, since it
// may be asked again.
//
// # When DidNotHappen is safe
//
// An earlier attempt may still be on its way: its process was stopped rather than
// dead, its transaction is open, its request is in some queue. Finding no order
// proves nothing about the next second. So DidNotHappen may be said only where the
// resource itself refuses the late writer, by a unique key that both attempts
// share, by a fence, or because the attempt completes its record in the same
// transaction (pgstore's CompleteTx). Then the worst that comes of a wrong answer
// is that the second attempt is refused and finds the first.
//
// Where being run twice does no harm, a Reconciler may say DidNotHappen always.
type Reconciler func(ctx context.Context, r Record) (Verdict, error)

// Verdict is what became of the earlier attempts. The zero Verdict is CannotTell.
type Verdict struct {
	kind   verdict
	result Result
	reason string
}

type verdict uint8

const (
	cannotTell verdict = iota
	happened
	didNotHappen
)

// Happened says that the intent has been carried out, with this result: the
// record becomes SUCCESS, and the result is replayed.
func Happened(r Result) Verdict { return Verdict{kind: happened, result: r} }

// DidNotHappen says that no attempt has had an effect, and that none will have one
// any more: see [Reconciler].
func DidNotHappen() Verdict { return Verdict{kind: didNotHappen} }

// CannotTell says that it is not known, and for people why. The record becomes
// UNKNOWN, and after a pause it is asked again.
func CannotTell(reason string) Verdict { return Verdict{reason: reason} }

// String is the verdict's name: happened, did_not_happen, cannot_tell.
func (v Verdict) String() string {
	switch v.kind {
	case happened:
		return "happened"
	case didNotHappen:
		return "did_not_happen"
	}
	return "cannot_tell"
}

const noReconciler = "there is no Reconciler to ask"

// ask is the verdict on r. Without a Reconciler nobody can tell.
func (g *Guard) ask(ctx context.Context, r Record) Verdict {
	if g.config.Reconciler == nil {
		return CannotTell(noReconciler)
	}
	begun := g.config.Clock.Now()
	v, err := g.config.Reconciler(ctx, r)
	if err != nil {
		v = CannotTell(err.Error())
	}
	if v.kind == cannotTell && v.reason == "" {
		v.reason = "the Reconciler could not tell"
	}
	g.config.Trace.reconciled(r, v, g.config.Clock.Now().Lower(begun), err)
	return v
}
