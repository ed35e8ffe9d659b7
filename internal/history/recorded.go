package history

import (
	"errors"
	"fmt"
	"time"
)

// Recorded makes a run of what clients have recorded. The order of the events
// does not matter, so the records of several clients need not be merged by time.
//
// What nobody relied on is left out: an acquire that failed, and one of unknown
// outcome, which may have been granted to a holder who was never told. A lease
// whose release was not recorded, as that of a client that was killed, lasts
// until validity's end, and so does one whose extension failed.
//
// An error says that the record contradicts itself, or that something is missing
// from it: nothing can be said of such a run.
func Recorded(events []Event) (Run, error) {
	r := record{acquires: make(map[leaseID]*acquisition), appends: make(map[place]*Append)}
	// Each looks for the events it is for, and needs what those before have found.
	for _, take := range []func(Event) error{Event.check, r.acquireCalled, r.acquireReturned, r.during, r.appendReturned} {
		for _, e := range events {
			if err := take(e); err != nil {
				return Run{}, fmt.Errorf("%s by client %d for lease %d at %v: %w", e.Op, e.Client, e.Lease, e.At, err)
			}
		}
	}
	var run Run
	for _, id := range r.won {
		run.Holds = append(run.Holds, *r.acquires[id].hold)
	}
	for _, at := range r.called {
		run.Appends = append(run.Appends, *r.appends[at])
	}
	return run, nil
}

// record is what Recorded has found so far.
type record struct {
	acquires map[leaseID]*acquisition
	won      []leaseID // in the order of the events
	appends  map[place]*Append
	called   []place // in the order of the events
}

// leaseID names a lease, or an acquire of which none came.
type leaseID struct{ client, lease int }

type acquisition struct {
	call     Event
	returned bool
	hold     *Hold // nil where it came to none
}

func (r *record) acquireCalled(e Event) error {
	if e.Op != OpAcquire || e.Outcome != "" {
		return nil
	}
	id := leaseID{e.Client, e.Lease}
	if r.acquires[id] != nil {
		return errors.New("it was called before")
	}
	r.acquires[id] = &acquisition{call: e}
	return nil
}

func (r *record) acquireReturned(e Event) error {
	if e.Op != OpAcquire || e.Outcome == "" {
		return nil
	}
	id := leaseID{e.Client, e.Lease}
	a := r.acquires[id]
	switch {
	case a == nil:
		return errors.New("it returned and was never called")
	case a.returned:
		return errors.New("it returned twice")
	case a.call.Key != e.Key:
		return fmt.Errorf("it was called for %q and returned for %q", a.call.Key, e.Key)
	}
	a.returned = true
	if e.Outcome == OK {
		a.hold = &Hold{Key: e.Key, Holder: e.Client, Fence: e.Fence, Called: a.call.At, Acquired: e.At, Until: e.Until}
		r.won = append(r.won, id)
	}
	return nil
}

// during takes what happened under a lease.
func (r *record) during(e Event) error {
	if e.Op == OpAcquire {
		return nil
	}
	a := r.acquires[leaseID{e.Client, e.Lease}]
	switch {
	case a == nil || a.hold == nil:
		return errors.New("there was no such lease")
	case a.hold.Key != e.Key:
		return fmt.Errorf("it is for %q and the lease on %q", e.Key, a.hold.Key)
	}
	h := a.hold
	switch {
	case e.Op == OpExtend && e.Outcome == OK:
		h.Until = max(h.Until, e.Until) // none makes a lease shorter
	case e.Op == OpRelease && e.Outcome == "":
		h.Released = earlier(h.Released, e.At)
	case e.Op == OpLost:
		h.Lost = earlier(h.Lost, e.At)
	case e.Op == OpAppend && e.Outcome == "":
		at := place{e.Key, e.Element}
		if r.appends[at] != nil {
			return fmt.Errorf("%q was appended before, so the two cannot be told apart", e.Element)
		}
		r.appends[at] = &Append{
			Entry: Entry{e.Key, h.Fence, e.Element}, Holder: e.Client, Lease: e.Lease, Called: e.At, Outcome: Unknown,
		}
		r.called = append(r.called, at)
	}
	return nil
}

// earlier is the earlier of two moments, of which the first may not have been.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (r *record) appendReturned(e Event) error {
	if e.Op != OpAppend || e.Outcome == "" {
		return nil
	}
	a := r.appends[place{e.Key, e.Element}]
	switch {
	case a == nil || a.Holder != e.Client || a.Lease != e.Lease:
		return fmt.Errorf("%q returned and was never called", e.Element)
	case a.Returned != 0:
		return fmt.Errorf("%q returned twice", e.Element)
	case e.At < a.Called:
		return fmt.Errorf("%q returned before it was called", e.Element)
	}
	a.Outcome, a.Returned = e.Outcome, e.At
	return nil
}
