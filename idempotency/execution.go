package idempotency

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
)

// Execution is one run, as what runs sees it. It is valid until that returns.
type Execution struct {
	Key Key

	// Attempt counts owners of the record, from 1; 0 if Degraded.
	Attempt int64

	// Takeover says that earlier attempts were interrupted, and that the Reconciler
	// has said that they did nothing.
	Takeover bool

	// Degraded says that the store gave no answer, and that nothing but what is run
	// keeps a second run from having an effect.
	Degraded bool

	guard       *Guard
	owner       Token
	fingerprint fingerprint.Print
	startedAt   time.Time // by the store's clock; zero if Degraded
	reconciled  bool      // the Reconciler has said that earlier attempts did nothing
}

// Completion is what completes the record with r, for a store that can do that
// in a transaction of the caller's: see CompleteTx of package pgstore.
func (ex *Execution) Completion(r Result) CompleteRequest {
	if len(r.Response) > ex.guard.config.MaxResponse {
		r = Result{Tombstone: true}
	}
	return CompleteRequest{
		Key: ex.Key, Owner: ex.owner, Response: ex.guard.config.Seal.store(ex.Key, r),
		Retention: ex.guard.config.Retention, Fingerprint: ex.fingerprint,
		Attempt: max(ex.Attempt, 1), StartedAt: ex.startedAt,
	}
}

// String names the execution for logs, without its key.
func (ex *Execution) String() string {
	return fmt.Sprintf("%s %s attempt %d", ex.Key.Operation, ex.Key.Digest(), ex.Attempt)
}
