package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

const claimants = 100

func fourAnswers(t *trial) {
	t.claim("a", idempotency.Created)
	t.claim("b", idempotency.InProgress)
	_, err := t.complete("a", "o1001")
	t.must(err)
	if c := t.claim("c", idempotency.Replay); string(c.Record.Response) != "o1001" || c.Record.State != idempotency.StateSuccess {
		t.Errorf("replayed: %+v", c.Record)
	}
	other := t.request("d")
	other.Fingerprint = printY
	c, err := t.Store.Claim(t.Context(), other)
	if err != nil || c.Outcome != idempotency.Mismatch {
		t.Errorf("another request: %v, %v", c.Outcome, err)
	}
	for outcome, code := range map[idempotency.Outcome]int{
		idempotency.Created: 0, idempotency.InProgress: 1, idempotency.Replay: 2, idempotency.Mismatch: 3,
	} {
		if int(outcome) != code {
			t.Errorf("%v has the code %d, want %d", outcome, outcome, code)
		}
	}
}

// outcomes counts the answers to claims of many owners at once.
func (t *trial) outcomes() map[idempotency.Outcome]int {
	t.Helper()
	var mu sync.Mutex // guards counts and errs
	counts := map[idempotency.Outcome]int{}
	var errs []error
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range claimants {
		all.Go(func() {
			<-start
			c, err := t.Store.Claim(t.Context(), t.request(idempotency.Token(fmt.Sprintf("owner %d", i))))
			mu.Lock()
			defer mu.Unlock()
			counts[c.Outcome]++
			errs = append(errs, err)
		})
	}
	close(start)
	all.Wait()
	t.must(errors.Join(errs...))
	return counts
}

func oneOfManyClaimsIsFirst(t *trial) {
	got := t.outcomes()
	if got[idempotency.Created] != 1 || got[idempotency.InProgress] != claimants-1 {
		t.Errorf("%v, want one CREATED and the rest IN_PROGRESS", got)
	}
}

func oneOfManyClaimsTakesOver(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	got := t.outcomes()
	if got[idempotency.Takeover] != 1 || got[idempotency.InProgress] != claimants-1 {
		t.Errorf("%v, want one TAKEOVER and the rest IN_PROGRESS", got)
	}
	if r := t.get(); r.Attempt != 2 {
		t.Errorf("it is attempt %d, want 2", r.Attempt)
	}
}

// Many want it again and again, and it is free again each time: a claim meets
// every moment of another's end.
func ownersTakeTurns(t *trial) {
	const owners, turns = 8, 40
	var inside, ran atomic.Int32
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			for turn := range turns {
				owner := idempotency.Token(fmt.Sprint("owner ", i, " turn ", turn))
				c, err := t.Store.Claim(t.Context(), t.request(owner))
				if err != nil || c.Outcome != idempotency.Created && c.Outcome != idempotency.InProgress {
					t.Errorf("claim: %v, %v", c.Outcome, err)
					return
				}
				if c.Outcome == idempotency.InProgress {
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d own it at once", n)
				}
				ran.Add(1)
				inside.Add(-1)
				if err := t.abandon(owner, false); err != nil {
					t.Errorf("abandon: %v", err)
				}
			}
		})
	}
	all.Wait()
	if ran.Load() == 0 {
		t.Error("nobody got it")
	}
}

// mismatched claims for request Y and fails the test unless that is refused and
// changes nothing.
func (t *trial) mismatched(state string) {
	t.Helper()
	t.unchanged(func() {
		t.Helper()
		for _, owner := range []idempotency.Token{"a", "y"} {
			other := t.request(owner)
			other.Fingerprint = printY
			c, err := t.Store.Claim(t.Context(), other)
			if err != nil || c.Outcome != idempotency.Mismatch {
				t.Errorf("%s: another request of %s: %v, %v", state, owner, c.Outcome, err)
			}
		}
	})
}

func fingerprintComesFirst(t *trial) {
	t.claim("a", idempotency.Created)
	t.mismatched("in progress")
	t.elapse(lease + time.Minute)
	t.mismatched("lapsed")
	t.claim("a", idempotency.Created) // its own, late
	t.must(t.unknown("a"))
	t.mismatched("unknown")
	t.elapse(pause + time.Minute)
	t.mismatched("unknown, after the pause")
	t.claim("b", idempotency.Takeover)
	t.mismatched("taken over")
	_, err := t.complete("b", "o1001")
	t.must(err)
	t.mismatched("success")
}

func mismatchLeavesALapsedRecord(t *trial) {
	t.claim("a", idempotency.Created)
	t.elapse(lease + time.Minute)
	t.mismatched("lapsed")
	if c := t.claim("c", idempotency.Takeover); c.Record.Fingerprint != printX || c.Record.Attempt != 2 {
		t.Errorf("taken over: %+v", c.Record)
	}
}

func alternatesMatch(t *trial) {
	t.claim("a", idempotency.Created)
	newer := t.request("b")
	newer.Fingerprint, newer.Alternates = "v2:x", []fingerprint.Print{"v0:x", printX}
	for _, want := range []idempotency.Outcome{idempotency.InProgress, idempotency.Takeover} {
		c, err := t.Store.Claim(t.Context(), newer)
		if err != nil || c.Outcome != want {
			t.Errorf("under a newer version: %v, %v, want %v", c.Outcome, err, want)
		}
		t.elapse(lease + time.Minute)
	}
	if r := t.get(); r.Fingerprint != printX {
		t.Errorf("its fingerprint became %s", r.Fingerprint)
	}
}

func claimsThatLackSomethingAreRefused(t *trial) {
	for name, lacking := range map[string]func(*idempotency.ClaimRequest){
		"no lease":       func(r *idempotency.ClaimRequest) { r.Lease = 0 },
		"no retention":   func(r *idempotency.ClaimRequest) { r.Retention = 0 },
		"no owner":       func(r *idempotency.ClaimRequest) { r.Owner = "" },
		"no fingerprint": func(r *idempotency.ClaimRequest) { r.Fingerprint = "" },
		"no principal":   func(r *idempotency.ClaimRequest) { r.Key.Principal = "" },
		"no text":        func(r *idempotency.ClaimRequest) { r.Fingerprint = "v1:\x00" },
		"no UTF-8":       func(r *idempotency.ClaimRequest) { r.Alternates = []fingerprint.Print{"v1:\xff"} },
	} {
		r := t.request("a")
		lacking(&r)
		_, err := t.Store.Claim(t.Context(), r)
		t.is(name, err, idempotency.ErrInvalid)
	}
	_, err := t.Store.Get(t.Context(), t.key)
	t.is("afterwards", err, idempotency.ErrNotFound)

	// What may be left out does not make a claim look free.
	bare := t.request("a")
	bare.Holder, bare.Alternates = "", nil
	c, err := t.Store.Claim(t.Context(), bare)
	if err != nil || c.Outcome != idempotency.Created {
		t.Fatalf("%v, %v", c.Outcome, err)
	}
	bare.Owner = "b"
	for range 2 {
		c, err = t.Store.Claim(t.Context(), bare)
		if err != nil || c.Outcome != idempotency.InProgress {
			t.Errorf("while a has it: %v, %v", c.Outcome, err)
		}
	}
}

func aRenewedLeaseLasts(t *trial) {
	first := t.claim("a", idempotency.Created)
	if off := (first.Left - lease).Abs(); off > time.Minute {
		t.Errorf("its lease lasts %v, want %v", first.Left, lease)
	}
	for range 3 {
		t.elapse(lease * 2 / 3)
		t.must(t.renew("a"))
	}
	c := t.claim("b", idempotency.InProgress)
	if off := (c.Left - lease).Abs(); off > time.Minute {
		t.Errorf("renewed just now, it lasts %v, want %v", c.Left, lease)
	}
	if off := (c.Age - 2*lease).Abs(); off > time.Minute {
		t.Errorf("it is %v old, want %v", c.Age, 2*lease)
	}
	t.is("renewal by another", t.renew("b"), idempotency.ErrLeaseLost)
}

func keysDoNotMeet(t *trial) {
	// Shifted, escaped and odd names that a careless join would mix up.
	keys := []idempotency.Key{
		{Operation: "a:b", Principal: "c", Value: t.key.Value},
		{Operation: "a", Principal: "b:c", Value: t.key.Value},
		{Operation: "a", Principal: "b", Value: "c:" + t.key.Value},
		{Operation: "a%3Ab", Principal: "c", Value: t.key.Value},
		{Operation: "a", Principal: "B", Value: "c:" + t.key.Value},
		{Operation: "a", Principal: "b", Value: "c:" + t.key.Value + " "},
		{Operation: "{a}b", Principal: "a}b{", Value: "}{" + t.key.Value},
		{Operation: "é", Principal: "\xff\x00", Value: "\n" + t.key.Value},
	}
	for i, k := range keys {
		t.key = k
		t.claim(idempotency.Token(fmt.Sprint(i)), idempotency.Created)
		_, err := t.complete(idempotency.Token(fmt.Sprint(i)), fmt.Sprint("answer ", i))
		t.must(err)
	}
	for i, k := range keys {
		t.key = k
		c := t.claim("again", idempotency.Replay)
		if want := fmt.Sprint("answer ", i); string(c.Record.Response) != want || c.Record.Key != k {
			t.Errorf("%+v got %q of %+v, want %q", k, c.Record.Response, c.Record.Key, want)
		}
	}
}

func aRecordShowsWhatIsKnown(t *trial) {
	c := t.claim("a", idempotency.Created)
	r := t.get()
	if r.Key != t.key || r.Fingerprint != printX || r.State != idempotency.StateInProgress || r.Attempt != 1 || r.Holder != "host/a" {
		t.Errorf("in progress: %+v", r)
	}
	if r.LeaseUntil.Sub(r.StartedAt) != lease || !r.StartedAt.Equal(c.Record.StartedAt) {
		t.Errorf("it began at %v, the claim said %v, and the lease is until %v", r.StartedAt, c.Record.StartedAt, r.LeaseUntil)
	}
	if off := r.ExpiresAt.Sub(r.StartedAt) - retention; off.Abs() > time.Minute {
		t.Errorf("it began at %v and expires at %v", r.StartedAt, r.ExpiresAt)
	}
	t.must(t.unknown("a"))
	if r := t.get(); r.State != idempotency.StateUnknown || r.Reason != "the gateway was silent" {
		t.Errorf("unknown: %+v", r)
	}
	t.elapse(pause + time.Minute)
	t.claim("b", idempotency.Takeover)
	_, err := t.complete("b", "o1001")
	t.must(err)
	r = t.get()
	if r.State != idempotency.StateSuccess || r.Attempt != 2 || r.Holder != "host/b" || r.Reason != "" || !r.LeaseUntil.IsZero() || string(r.Response) != "o1001" {
		t.Errorf("success: %+v", r)
	}
}
