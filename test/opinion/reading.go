package opinion

import (
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// lease is an acquire and what came of it. Moments are 0 where nothing was
// recorded.
type lease struct {
	client, number int
	key            string
	called, got    time.Duration
	outcome        history.Outcome // of the acquire
	fence          fence.Token
	until          time.Duration
	release, freed time.Duration // Release was called, and had a definite answer
	lost           time.Duration
	end            time.Duration // of the run, for all the same
}

// read finds the leases, in the order in which they are first mentioned. It
// trusts the record; whether that contradicts itself is for history to say.
func read(events []history.Event) []*lease {
	type id struct{ client, lease int }
	found := make(map[id]*lease)
	var all []*lease
	var end time.Duration
	for _, e := range events {
		l := found[id{e.Client, e.Lease}]
		if l == nil {
			l = &lease{client: e.Client, number: e.Lease, key: e.Key, outcome: history.Unknown}
			found[id{e.Client, e.Lease}] = l
			all = append(all, l)
		}
		end = max(end, e.At+1, e.Until+1)
		switch definite := e.Outcome == history.OK || e.Outcome == history.Fail; {
		case e.Op == history.OpAcquire && e.Outcome == "":
			l.called = e.At
		case e.Op == history.OpAcquire:
			l.got, l.outcome, l.fence, l.until = e.At, e.Outcome, e.Fence, max(l.until, e.Until)
		case e.Op == history.OpExtend && e.Outcome == history.OK:
			l.until = max(l.until, e.Until)
		case e.Op == history.OpRelease && e.Outcome == "" && (l.release == 0 || e.At < l.release):
			l.release = e.At
		case e.Op == history.OpRelease && definite && (l.freed == 0 || e.At < l.freed):
			l.freed = e.At
		case e.Op == history.OpLost && (l.lost == 0 || e.At < l.lost):
			l.lost = e.At
		}
	}
	for _, l := range all {
		l.end = end
	}
	return all
}

// over is when and why the holder stopped, and if by a release of its own, when
// that had its answer.
func (l *lease) over() (from time.Duration, why string, answered time.Duration) {
	stops := func(at time.Duration) bool {
		return at != 0 && (l.release == 0 || at < l.release) && (l.lost == 0 || at <= l.lost) && at <= l.until
	}
	switch {
	case stops(l.lost):
		return l.lost, "told lost", 0
	case stops(l.until):
		return l.until, "validity over", 0
	}
	if l.freed == 0 {
		return l.release, "release, unknown", l.end
	}
	return l.release, "release", l.freed
}
