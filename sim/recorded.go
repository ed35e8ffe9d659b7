package sim

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// recorded is what clients saw of their leases, for judges of another kind. Times are
// those of the world: what a holder knows of validity's end by a clock that is
// wrong is here when that end comes. An acquire that came to nothing is left out.
func (j *judge) recorded() (events []history.Event) {
	for _, h := range j.holds {
		add := func(at time.Duration, op history.Op, more history.Event) {
			if at == 0 && op != history.OpAcquire { // it did not happen
				return
			}
			more.At, more.Op, more.Client, more.Lease, more.Key = max(at, 1), op, h.client.id, h.number, h.name
			events = append(events, more)
		}
		add(h.began, history.OpAcquire, history.Event{})
		add(h.from, history.OpAcquire, history.Event{Outcome: history.OK, Token: h.digest, Fence: h.fence, Until: max(h.until, 1)})
		add(h.lost, history.OpLost, history.Event{})
		add(h.released, history.OpRelease, history.Event{})
	}
	for _, a := range j.appends {
		call := history.Event{At: a.Called, Client: a.Holder, Lease: a.Lease, Op: history.OpAppend, Key: a.Key, Element: a.Element}
		back := call
		back.At, back.Outcome = a.Returned, a.Outcome
		events = append(events, call, back)
	}
	return events
}
