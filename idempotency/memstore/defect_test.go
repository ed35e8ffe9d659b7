package memstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/storetest"
)

// broken is a store with something wrong in it; what is nil is right.
type broken struct {
	*Store
	claim    func(*broken, context.Context, *idempotency.ClaimRequest) context.Context
	claimed  func(*idempotency.Claim)
	renew    func() bool // whether to do it
	complete func(*broken, context.Context, *idempotency.CompleteRequest) error
	unknown  func(*idempotency.UnknownRequest)
	abandon  func(*idempotency.AbandonRequest)
	resolve  func(*idempotency.Resolution)
}

func (b *broken) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	if b.claim != nil {
		ctx = b.claim(b, ctx, &r)
	}
	c, err := b.Store.Claim(ctx, r)
	if b.claimed != nil {
		b.claimed(&c)
	}
	return c, err
}

func (b *broken) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	if b.renew != nil && !b.renew() {
		return nil
	}
	return b.Store.Renew(ctx, r)
}

func (b *broken) Complete(ctx context.Context, r idempotency.CompleteRequest) (idempotency.Completion, error) {
	if b.complete != nil {
		if err := b.complete(b, ctx, &r); err != nil {
			return 0, err
		}
	}
	return b.Store.Complete(ctx, r)
}

func (b *broken) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	if b.unknown != nil {
		b.unknown(&r)
	}
	return b.Store.MarkUnknown(ctx, r)
}

func (b *broken) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	if b.abandon != nil {
		b.abandon(&r)
	}
	return b.Store.Abandon(ctx, r)
}

func (b *broken) Resolve(ctx context.Context, r idempotency.Resolution) error {
	if b.resolve != nil {
		b.resolve(&r)
	}
	return b.Store.Resolve(ctx, r)
}

// defects are what has gone wrong for others, and the tests that find it.
var defects = map[string]struct {
	store broken
	found []string
}{
	"nothing": {},
	"another request takes over what has lapsed": {
		broken{claim: func(b *broken, ctx context.Context, r *idempotency.ClaimRequest) context.Context {
			if there, err := b.Get(ctx, r.Key); err == nil {
				r.Alternates = append(r.Alternates, there.Fingerprint)
			}
			return ctx
		}},
		[]string{"FingerprintComesFirst", "MismatchLeavesALapsedRecord", "FourAnswers"},
	},
	"an owner is not known again": {
		broken{claim: func(_ *broken, ctx context.Context, r *idempotency.ClaimRequest) context.Context {
			r.Owner = idempotency.NewToken()
			return ctx
		}},
		[]string{"CallsMayBeSentTwice"},
	},
	"no lease is a lease that has ended": {
		broken{claim: func(_ *broken, ctx context.Context, r *idempotency.ClaimRequest) context.Context {
			r.Lease = max(r.Lease, time.Millisecond)
			return ctx
		}},
		[]string{"ClaimsThatLackSomethingAreRefused"},
	},
	"contexts are ignored": {
		broken{claim: func(_ *broken, ctx context.Context, _ *idempotency.ClaimRequest) context.Context {
			return context.WithoutCancel(ctx)
		}},
		[]string{"ACallWhoseContextHasEndedChangesNothing"},
	},
	"a take-over looks like a first claim": {
		broken{claimed: func(c *idempotency.Claim) {
			if c.Outcome == idempotency.Takeover {
				c.Outcome = idempotency.Created
			}
		}},
		[]string{"OneOfManyClaimsTakesOver", "CallsMayBeSentTwice"},
	},
	"renewals do nothing": {
		broken{renew: func() bool { return false }},
		[]string{"ARenewedLeaseLasts", "RetentionCountsFromCompletion"},
	},
	"what was lost is not put back": {
		broken{complete: func(b *broken, ctx context.Context, r *idempotency.CompleteRequest) error {
			if _, err := b.Get(ctx, r.Key); errors.Is(err, idempotency.ErrNotFound) {
				return idempotency.ErrLeaseLost
			}
			return nil
		}},
		[]string{"WhatWasLostIsPutBack"},
	},
	"responses are text": {
		broken{complete: func(_ *broken, _ context.Context, r *idempotency.CompleteRequest) error {
			r.Response = bytes.ToValidUTF8(r.Response, []byte("?"))
			return nil
		}},
		[]string{"ResponsesAreBytes"},
	},
	"retention does not count from completion": {
		broken{complete: func(_ *broken, _ context.Context, r *idempotency.CompleteRequest) error {
			r.Retention = time.Second
			return nil
		}},
		[]string{"RetentionCountsFromCompletion"},
	},
	"unknown has no pause": {
		broken{unknown: func(r *idempotency.UnknownRequest) { r.Pause = 0 }},
		[]string{"UnknownPausesAndIsTakenOverOnce"},
	},
	"abandoning a take-over frees it": {
		broken{abandon: func(r *idempotency.AbandonRequest) { r.Reconciled = true }},
		[]string{"AbandoningATakeoverLeavesTheQuestion", "AnyOrderOfCallsIsAsTheModelSays"},
	},
	"whatever is resolved is freed": {
		broken{resolve: func(r *idempotency.Resolution) { r.Happened = false }},
		[]string{"Resolved", "AnyOrderOfCallsIsAsTheModelSays"},
	},
}

const named = "STORETEST_DEFECT"

// TestStoreWithADefect is what TestDefectsAreFound runs, in processes of their
// own; by itself it tests a store without one.
func TestStoreWithADefect(t *testing.T) {
	name := os.Getenv(named)
	if name == "" {
		name = "nothing"
	}
	defect := defects[name].store
	defect.Store = New(nil)
	storetest.Run(t, subject(&defect, defect.Store))
}

// The suite is of use only if it notices what is wrong with a store. It is tried
// here, where the time of one record can be moved.
func TestDefectsAreFound(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, defect := range defects {
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestStoreWithADefect$")
		cmd.Env = append(os.Environ(), named+"="+name)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (len(defect.found) > 0) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for _, test := range defect.found {
			if !strings.Contains(string(out), "--- FAIL: TestStoreWithADefect/"+test+" ") {
				t.Errorf("%s: %s has not found it:\n%s", name, test, out)
			}
		}
	}
}
