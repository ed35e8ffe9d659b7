package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

var (
	order = idempotency.Key{Operation: "orders", Principal: "u1001", Value: "req-001"}

	printOfX = fingerprint.Print("v1:x")
	printOfY = fingerprint.Print("v1:y")
)

func guard(t *testing.T, s idempotency.Store, c idempotency.Config) *idempotency.Guard {
	t.Helper()
	g, err := idempotency.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// answering is a run that counts itself and answers text.
func answering(runs *int, text string) idempotency.Func {
	return func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		*runs++
		return idempotency.Result{Response: []byte(text)}, nil
	}
}

func TestARetryGetsTheFirstAnswerAndRunsNothing(t *testing.T) {
	g := guard(t, memstore.New(nil), idempotency.Config{})
	runs := 0
	for i, want := range []idempotency.Info{
		{Outcome: idempotency.Created, Attempt: 1, Ran: true, Stored: true},
		{Outcome: idempotency.Replay, Attempt: 1, Replayed: true, Stored: true},
		{Outcome: idempotency.Replay, Attempt: 1, Replayed: true, Stored: true},
	} {
		r, info, err := g.Do(t.Context(), idempotency.Request{Key: order, Fingerprint: printOfX}, answering(&runs, "o1001"))
		if err != nil || string(r.Response) != "o1001" || info != want {
			t.Errorf("call %d: %q, %+v, %v", i, r.Response, info, err)
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
}

func TestAnotherRequestUnderTheKeyIsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), idempotency.Config{})
	runs := 0
	if _, _, err := g.Do(t.Context(), idempotency.Request{Key: order, Fingerprint: printOfX}, answering(&runs, "o1001")); err != nil {
		t.Fatal(err)
	}
	_, info, err := g.Do(t.Context(), idempotency.Request{Key: order, Fingerprint: printOfY}, answering(&runs, "o1002"))
	if !errors.Is(err, idempotency.ErrMismatch) || info.Outcome != idempotency.Mismatch || runs != 1 {
		t.Errorf("%+v, %v, ran %d times", info, err, runs)
	}
}
