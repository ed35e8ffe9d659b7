package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func sealKey(id string) idempotency.SealKey {
	return idempotency.SealKey{ID: id, Key: bytes.Repeat([]byte(id[:1]), 32)}
}

func seal(t *testing.T, first idempotency.SealKey, older ...idempotency.SealKey) *idempotency.Seal {
	t.Helper()
	s, err := idempotency.NewSeal(first, older...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealedResponsesAreReplayedAndHidden(t *testing.T) {
	s := memory()
	var c counter
	for _, id := range []string{"2026-10", strings.Repeat("long", 63) + "est"} { // 255 bytes
		g := guard(t, s, idempotency.Config{Seal: seal(t, sealKey(id))})
		r := asked
		r.Key.Value = id[:6]
		for range 2 {
			got, _, err := g.Do(t.Context(), r, c.answering("card 4111", 0))
			if err != nil || string(got.Response) != "card 4111" {
				t.Errorf("%q, %v", got.Response, err)
			}
		}
		stored, err := s.Get(t.Context(), r.Key)
		if err != nil || bytes.Contains(stored.Response, []byte("4111")) {
			t.Errorf("stored: %q, %v", stored.Response, err)
		}
	}
	if c.runs() != 2 {
		t.Errorf("%d runs", c.runs())
	}
}

func TestKeysOfASealAreChangedOneAfterAnother(t *testing.T) {
	s := memory()
	var c counter
	do := func(seal *idempotency.Seal) (string, error) {
		r, _, err := guard(t, s, idempotency.Config{Seal: seal}).Do(t.Context(), asked, c.answering("o1001", 0))
		return string(r.Response), err
	}
	do(seal(t, sealKey("old")))
	for name, c := range map[string]struct {
		seal *idempotency.Seal
		want error
	}{
		"the new first, the old kept": {seal(t, sealKey("new"), sealKey("old")), nil},
		"the old given up too early":  {seal(t, sealKey("new")), idempotency.ErrNotReplayable},
		"another under its name":      {seal(t, idempotency.SealKey{ID: "old", Key: make([]byte, 16)}), idempotency.ErrNotReplayable},
		"no seal":                     {nil, idempotency.ErrNotReplayable},
	} {
		got, err := do(c.seal)
		if !errors.Is(err, c.want) || (err == nil) != (got == "o1001") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if c.runs() != 1 {
		t.Errorf("%d runs: what cannot be read has been done all the same", c.runs())
	}
}

// Who can write to the store can neither move a response to another key nor put
// in one of their own.
func TestASealBindsAResponseToItsKey(t *testing.T) {
	s := memory()
	g := guard(t, s, idempotency.Config{Seal: seal(t, sealKey("k"))})
	var c counter
	if _, _, err := g.Do(t.Context(), asked, c.answering("of u1001", 0)); err != nil {
		t.Fatal(err)
	}
	genuine, err := s.Get(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(genuine.Response)
	changed[len(changed)-1] ^= 1
	for name, response := range map[string][]byte{
		"moved": genuine.Response, "changed": changed, "not sealed": []byte("rforged"), "nothing": nil,
		"cut": genuine.Response[:5], "only a form": []byte("s"), "a long name": {'s', 255, 'k'}, "no form": []byte("?"),
	} {
		victim := asked
		victim.Key.Value = name
		_, err := s.Complete(t.Context(), idempotency.CompleteRequest{
			Key: victim.Key, Owner: "mallory", Response: response, Retention: time.Hour, Fingerprint: asked.Fingerprint, Attempt: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, info, err := g.Do(t.Context(), victim, c.answering("", 0))
		if !errors.Is(err, idempotency.ErrNotReplayable) || len(got.Response) > 0 || info.Replayed {
			t.Errorf("%s: %q, %v", name, got.Response, err)
		}
	}
	if c.runs() != 1 {
		t.Errorf("%d runs", c.runs())
	}
}

func TestBadSealKeysAreRefused(t *testing.T) {
	for name, keys := range map[string][]idempotency.SealKey{
		"no name":        {{Key: make([]byte, 32)}},
		"a long name":    {{ID: strings.Repeat("x", 256), Key: make([]byte, 32)}},
		"a short key":    {{ID: "a", Key: make([]byte, 15)}},
		"one name twice": {sealKey("a"), sealKey("a")},
	} {
		if _, err := idempotency.NewSeal(keys[0], keys[1:]...); !errors.Is(err, idempotency.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An Execution completes elsewhere in the form that Do uses.
func TestACompletionIsStoredAsDoWould(t *testing.T) {
	s := memory()
	g := guard(t, s, idempotency.Config{Seal: seal(t, sealKey("k")), MaxResponse: 10})
	_, info, err := g.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		r := idempotency.Result{Response: []byte("o1001")}
		_, err := s.Complete(ctx, ex.Completion(r))
		return r, err
	})
	if err != nil || !info.Stored {
		t.Errorf("%+v, %v", info, err)
	}
	if r, _, err := g.Do(t.Context(), asked, nil); err != nil || string(r.Response) != "o1001" {
		t.Errorf("replayed: %q, %v", r.Response, err)
	}
}
