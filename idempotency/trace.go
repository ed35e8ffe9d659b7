package idempotency

import "time"

// Trace has hooks that a Guard calls as things happen, for logs and metrics. A
// nil hook is not called. Hooks are called from the goroutine concerned, may run
// concurrently and must return quickly, since the guard waits for them. None of
// them is given a key, only its operation and its digest.
type Trace struct {
	// Claimed is called once per Do that asked the store, and per record that Sweep
	// claims.
	Claimed func(ClaimEvent)

	// Ran is called when what was to be run once has ended.
	Ran func(RunEvent)

	// Reconciled is called when the Reconciler has answered.
	Reconciled func(ReconcileEvent)

	// Lost is called when a run's lease is lost, or must be taken to be.
	Lost func(LostEvent)

	// Called is called for every step in the store, when its last try has ended.
	Called func(CallEvent)
}

// ClaimEvent is the answer to a claim.
type ClaimEvent struct {
	Operation, Key string        // Key is the digest
	Outcome        Outcome       // means nothing if Err is not nil
	Age            time.Duration // since the key was first claimed
	Err            error         // why there is no answer
}

// RunEvent is the end of a run.
type RunEvent struct {
	Operation, Key     string
	Attempt            int64 // 0 if Degraded
	Takeover, Degraded bool
	Elapsed            time.Duration
	Err                error // what it returned, or that it panicked
	Stored             bool  // its outcome is in the store
}

// ReconcileEvent is an answer of the Reconciler.
type ReconcileEvent struct {
	Operation, Key string
	Attempt        int64
	Verdict        string // happened, did_not_happen or cannot_tell
	Elapsed        time.Duration
	Err            error
}

// LostEvent is the loss of a lease.
type LostEvent struct {
	Operation, Key string
	Attempt        int64
	Err            error // why
}

// CallEvent is a step in the store.
type CallEvent struct {
	Operation string
	Step      string // claim, renew, complete, unknown, abandon, get, resolve
	Tries     int
	Elapsed   time.Duration
	Err       error
}

func (t *Trace) claimed(k Key, c Claim, err error) {
	if t.Claimed != nil {
		t.Claimed(ClaimEvent{Operation: k.Operation, Key: k.Digest(), Outcome: c.Outcome, Age: c.Age, Err: err})
	}
}

func (t *Trace) ran(ex *Execution, elapsed time.Duration, stored bool, err error) {
	if t.Ran != nil {
		t.Ran(RunEvent{
			Operation: ex.Key.Operation, Key: ex.Key.Digest(), Attempt: ex.Attempt,
			Takeover: ex.Takeover, Degraded: ex.Degraded, Elapsed: elapsed, Err: err, Stored: stored,
		})
	}
}

func (t *Trace) reconciled(r Record, v Verdict, elapsed time.Duration, err error) {
	if t.Reconciled != nil {
		t.Reconciled(ReconcileEvent{
			Operation: r.Key.Operation, Key: r.Key.Digest(), Attempt: r.Attempt,
			Verdict: v.String(), Elapsed: elapsed, Err: err,
		})
	}
}

func (t *Trace) lost(ex *Execution, err error) {
	if t.Lost != nil {
		t.Lost(LostEvent{Operation: ex.Key.Operation, Key: ex.Key.Digest(), Attempt: ex.Attempt, Err: err})
	}
}

func (t *Trace) called(operation, step string, tries int, elapsed time.Duration, err error) {
	if t.Called != nil {
		t.Called(CallEvent{Operation: operation, Step: step, Tries: tries, Elapsed: elapsed, Err: err})
	}
}
