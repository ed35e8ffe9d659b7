package storetest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func aLateOwnerOverwritesNothing(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	t.claim("b", idempotency.Takeover)
	late := func(state string) {
		t.unchanged(func() {
			_, err := t.complete("a", "late")
			t.is(state+": complete", err, idempotency.ErrLeaseLost)
			t.is(state+": renew", t.renew("a"), idempotency.ErrLeaseLost)
			t.is(state+": unknown", t.unknown("a"), idempotency.ErrLeaseLost)
			t.is(state+": abandon", t.abandon("a", false), idempotency.ErrLeaseLost)
			t.is(state+": abandon, reconciled", t.abandon("a", true), idempotency.ErrLeaseLost)
		})
	}
	late("taken over")
	t.claim("c", idempotency.InProgress)
	_, err := t.complete("b", "of b")
	t.must(err)
	late("completed")
	if c := t.claim("c", idempotency.Replay); string(c.Record.Response) != "of b" {
		t.Errorf("replayed: %q", c.Record.Response)
	}
}

func aLateOwnerCompletesIfNobodyTookOver(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	done, err := t.complete("a", "late, and first")
	if done != idempotency.Stored || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	t.claim("b", idempotency.Replay)
}

// A call is sent again when its answer was lost.
func callsMayBeSentTwice(t *trial) {
	for range 2 {
		if c := t.claim("a", idempotency.Created); c.Record.Attempt != 1 {
			t.Errorf("the first claim is attempt %d", c.Record.Attempt)
		}
	}
	for range 2 {
		t.must(t.renew("a"))
	}
	for range 2 {
		t.must(t.unknown("a"))
	}
	t.elapse(pause + time.Minute)
	for range 2 {
		if c := t.claim("b", idempotency.Takeover); c.Record.Attempt != 2 || c.Record.State != idempotency.StateUnknown {
			t.Errorf("taken over: %+v", c.Record)
		}
	}
	for range 2 {
		t.must(t.abandon("b", false))
	}
	for range 2 {
		t.claim("c", idempotency.Takeover)
	}
	for _, want := range []idempotency.Completion{idempotency.Stored, idempotency.AlreadyStored} {
		done, err := t.complete("c", "o1001")
		if done != want || err != nil {
			t.Errorf("complete: %v, %v, want %v", done, err, want)
		}
	}
	t.unchanged(func() {
		done, err := t.complete("c", "something else")
		if done != idempotency.AlreadyStored || err != nil {
			t.Errorf("complete: %v, %v", done, err)
		}
	})

	t.key = newKey("orders")
	t.claim("a", idempotency.Created)
	for range 2 {
		t.must(t.abandon("a", false))
	}
	t.claim("b", idempotency.Created)
}

func whatWasLostIsPutBack(t *trial) {
	c := t.claim("a", idempotency.Created)
	t.must(t.Forget(t.Context(), t.key))
	t.is("renew", t.renew("a"), idempotency.ErrLeaseLost)
	t.is("unknown", t.unknown("a"), idempotency.ErrLeaseLost)
	request := idempotency.CompleteRequest{
		Key: t.key, Owner: "a", Response: []byte("o1001"), Retention: retention,
		Fingerprint: printX, Attempt: c.Record.Attempt, StartedAt: c.Record.StartedAt,
	}
	for _, want := range []idempotency.Completion{idempotency.Restored, idempotency.AlreadyStored} {
		if done, err := t.Store.Complete(t.Context(), request); done != want || err != nil {
			t.Errorf("complete: %v, %v, want %v", done, err, want)
		}
	}
	r := t.claim("b", idempotency.Replay).Record
	if string(r.Response) != "o1001" || r.Attempt != 1 || !r.StartedAt.Equal(c.Record.StartedAt) {
		t.Errorf("put back: %+v", r)
	}
	t.mismatched("put back")

	t.key = newKey("orders")
	if done, err := t.complete("degraded", "without a claim"); done != idempotency.Restored || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	t.claim("b", idempotency.Replay)
}

func aLostRecordIsNotPutBackOverAnother(t *trial) {
	t.claim("a", idempotency.Created)
	t.must(t.Forget(t.Context(), t.key))
	t.claim("b", idempotency.Created)
	t.unchanged(func() {
		_, err := t.complete("a", "late")
		t.is("complete", err, idempotency.ErrLeaseLost)
	})
}

func unknownPausesAndIsTakenOverOnce(t *trial) {
	t.claim("a", idempotency.Created)
	t.must(t.unknown("a"))
	c := t.claim("b", idempotency.Undecided)
	if off := (c.Left - pause).Abs(); off > time.Minute || c.Record.Reason != "the gateway was silent" {
		t.Errorf("%v left, %q", c.Left, c.Record.Reason)
	}
	t.is("renewal of what was let go", t.renew("a"), idempotency.ErrLeaseLost)
	t.elapse(pause + time.Minute)
	got := t.outcomes()
	if got[idempotency.Takeover] != 1 || got[idempotency.InProgress] != claimants-1 {
		t.Errorf("after the pause: %v", got)
	}

	// Without a pause it is taken over at once.
	t.key = newKey("orders")
	t.claim("a", idempotency.Created)
	t.must(t.Store.MarkUnknown(t.Context(), idempotency.UnknownRequest{Key: t.key, Owner: "a", Retention: retention}))
	if c := t.claim("b", idempotency.Takeover); c.Record.State != idempotency.StateUnknown || c.Record.Attempt != 2 {
		t.Errorf("taken over: %+v", c.Record)
	}
	if r := t.get(); r.State != idempotency.StateInProgress {
		t.Errorf("then it is %v", r.State)
	}
}

func abandonedIsFree(t *trial) {
	t.claim("a", idempotency.Created)
	t.unchanged(func() { t.is("by another", t.abandon("b", true), idempotency.ErrLeaseLost) })
	t.must(t.abandon("a", false))
	_, err := t.Store.Get(t.Context(), t.key)
	t.is("abandoned", err, idempotency.ErrNotFound)
	c := t.claim("b", idempotency.Created)
	if c.Record.Attempt != 1 {
		t.Errorf("attempt %d", c.Record.Attempt)
	}
	_, err = t.complete("b", "o1001")
	t.must(err)
	t.unchanged(func() { t.is("of what is done", t.abandon("b", true), idempotency.ErrLeaseLost) })
}

func abandoningATakeoverLeavesTheQuestion(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	t.claim("b", idempotency.Takeover)
	t.must(t.abandon("b", false))
	if c := t.claim("c", idempotency.Takeover); c.Record.State != idempotency.StateUnknown || c.Record.Attempt != 3 {
		t.Errorf("taken over: %+v", c.Record)
	}
	t.must(t.abandon("c", true))
	t.claim("d", idempotency.Created)
}

func completionLeavesTheRest(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	before := t.claim("b", idempotency.Takeover).Record
	_, err := t.Store.Complete(t.Context(), idempotency.CompleteRequest{
		Key: t.key, Owner: "b", Response: []byte("o1001"), Retention: retention,
		Fingerprint: printY, Attempt: 77, StartedAt: before.StartedAt.Add(time.Hour),
	})
	t.must(err)
	after := t.get()
	if after.Fingerprint != printX || after.Attempt != 2 || !after.StartedAt.Equal(before.StartedAt) || after.Holder != "host/b" {
		t.Errorf("completed: %+v", after)
	}
}

func responsesAreBytes(t *trial) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, response := range map[string][]byte{
		"nothing": nil, "one zero": {0}, "every byte": every, "a mebibyte": bytes.Repeat(every, 1<<12),
	} {
		t.key = newKey("orders")
		t.claim("a", idempotency.Created)
		_, err := t.complete("a", string(response))
		t.must(err)
		if c := t.claim("b", idempotency.Replay); !bytes.Equal(c.Record.Response, response) {
			t.Errorf("%s: %d bytes came back, and not the same", name, len(c.Record.Response))
		}
		if r := t.get(); !bytes.Equal(r.Response, response) {
			t.Errorf("%s: %d bytes are there, and not the same", name, len(r.Response))
		}
	}
}

func aCallWhoseContextHasEndedChangesNothing(t *trial) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
	_, err := t.Store.Claim(ended, t.request("a"))
	late("claim", err)
	_, err = t.Store.Get(t.Context(), t.key)
	t.is("afterwards", err, idempotency.ErrNotFound)

	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	t.unchanged(func() {
		_, err := t.Store.Claim(ended, t.request("b"))
		late("claim", err)
		late("renew", t.Store.Renew(ended, idempotency.RenewRequest{Key: t.key, Owner: "a", Lease: lease, Retention: retention}))
		_, err = t.Store.Complete(ended, idempotency.CompleteRequest{Key: t.key, Owner: "a", Retention: retention, Fingerprint: printX, Attempt: 1})
		late("complete", err)
		late("unknown", t.Store.MarkUnknown(ended, idempotency.UnknownRequest{Key: t.key, Owner: "a", Retention: retention}))
		late("abandon", t.Store.Abandon(ended, idempotency.AbandonRequest{Key: t.key, Owner: "a"}))
		_, err = t.Store.Get(ended, t.key)
		late("get", err)
	})
}
