package storetest

import (
	"math"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func lifeIsNeverShortened(t *trial) {
	long := t.request("a")
	long.Retention = 30 * retention
	_, err := t.Store.Claim(t.Context(), long)
	t.must(err)
	until := t.get().ExpiresAt
	kept := func(what string) {
		t.Helper()
		if r := t.get(); r.ExpiresAt.Before(until.Add(-time.Minute)) {
			t.Errorf("%s: it expires at %v, not at %v", what, r.ExpiresAt, until)
		}
	}
	t.must(t.renew("a"))
	kept("renewed")
	t.must(t.unknown("a"))
	kept("unknown")
	t.elapse(pause + time.Minute)
	until = t.get().ExpiresAt
	t.claim("b", idempotency.Takeover)
	kept("taken over")
	_, err = t.complete("b", "o1001")
	t.must(err)
	kept("completed")
}

func retentionCountsFromCompletion(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(retention - time.Hour)
	_, err := t.complete("a", "o1001")
	t.must(err)
	t.elapse(retention - time.Hour)
	t.claim("b", idempotency.Replay)
	t.elapse(2 * time.Hour)
	t.claim("b", idempotency.Created)

	// What is in progress lives as long from its last renewal.
	t.key = newKey("orders")
	t.claim("a", idempotency.Created)
	t.elapse(retention - time.Hour)
	t.must(t.renew("a"))
	t.elapse(retention - time.Hour)
	t.claim("b", idempotency.Takeover)
}

func anExpiredRecordIsNone(t *trial) {
	expired := func(name string) {
		t.elapse(retention + time.Hour)
		_, err := t.Store.Get(t.Context(), t.key)
		t.is(name, err, idempotency.ErrNotFound)
	}
	t.claim("a", idempotency.Created)
	expired("in progress")
	t.is("renew", t.renew("a"), idempotency.ErrLeaseLost)
	t.must(t.abandon("a", false))
	other := t.request("b")
	other.Fingerprint = printY
	c, err := t.Store.Claim(t.Context(), other)
	if err != nil || c.Outcome != idempotency.Created || c.Record.Attempt != 1 || c.Record.Fingerprint != printY {
		t.Errorf("another request: %+v, %v", c, err)
	}
	if c.Age.Abs() > time.Minute {
		t.Errorf("the new record is %v old", c.Age)
	}
	_, err = t.complete("b", "o1001")
	t.must(err)
	expired("success")
	if c := t.claim("c", idempotency.Created); c.Record.State != idempotency.StateInProgress || len(c.Record.Response) > 0 {
		t.Errorf("created again: %+v", c.Record)
	}
	t.elapse(retention + time.Hour)
	done, err := t.complete("c", "very late")
	if done != idempotency.Restored || err != nil {
		t.Errorf("complete: %v, %v", done, err)
	}
	if r := t.get(); r.Fingerprint != printX || r.Attempt != 1 || string(r.Response) != "very late" {
		t.Errorf("put back: %+v", r)
	}
}

// The longest time there is does not come out as one that is over.
func foreverIsLong(t *trial) {
	const forever = time.Duration(math.MaxInt64)
	const far = 100 * 365 * 24 * time.Hour
	kept := func(what string) {
		t.Helper()
		if r := t.get(); time.Until(r.ExpiresAt) < far {
			t.Errorf("%s: it expires at %v", what, r.ExpiresAt)
		}
	}
	r := t.request("a")
	r.Lease, r.Retention = forever, forever
	_, err := t.Store.Claim(t.Context(), r)
	t.must(err)
	kept("claimed")
	t.must(t.Store.Renew(t.Context(), idempotency.RenewRequest{Key: t.key, Owner: "a", Lease: forever, Retention: forever}))
	kept("renewed")
	t.elapse(time.Hour)
	if c := t.claim("b", idempotency.InProgress); c.Left < far {
		t.Errorf("a lease for ever has %v left", c.Left)
	}
	t.must(t.Store.MarkUnknown(t.Context(), idempotency.UnknownRequest{Key: t.key, Owner: "a", Pause: forever, Retention: forever}))
	t.claim("b", idempotency.Undecided)
	_, err = t.Store.Complete(t.Context(), idempotency.CompleteRequest{Key: t.key, Owner: "a", Response: []byte("o1001"), Retention: forever})
	t.must(err)
	kept("completed")
	t.claim("b", idempotency.Replay)
}
