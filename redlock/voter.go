package redlock

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A node votes if it is an independent master, and its grants count once every
// lock that it may have forgotten has ended. So there are two ways not to count.
//
// No voter is a replica, a second address of a server that votes already, or a
// member of a cluster that has other nodes: it has no vote of its own, and
// nothing that it says counts. Its lane takes no work.
//
// Quarantined is a node that has just started, or whose data have just been
// replaced: it may have granted a lock that it knows nothing of any more, so no
// grant, stamp or extension by it counts until the longest of them would be over.
// Not even an extension: somebody may count what it has forgotten in a round
// that is still going on. Until then it is sent to like any other, so that it
// fills up with the locks of today, and what it denies it knows.

// QuarantineError is why what a node grants does not count: it may have forgotten a
// lock that is still held.
type QuarantineError struct {
	For    time.Duration // how much longer
	Why    string        // "restarted 3s ago"
	MaxTTL time.Duration // the longest that such a lock may last
}

// Error says how long it lasts, and why.
func (e *QuarantineError) Error() string {
	return fmt.Sprintf("quarantined for %v more: %s, MaxTTL %v", rounded(e.For), e.Why, e.MaxTTL)
}

// rounded is d as precise as a person wants it, never less than it is.
func rounded(d time.Duration) time.Duration {
	unit := time.Second
	if d < time.Second {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}

// errNoVoter is why a lane takes no work although its node answers.
var errNoVoter = errors.New("not a voter")

// admit is why a node that says this of itself has no vote of its own, or nil.
func (v *voter) admit(p Peer) error {
	switch {
	case p.RunID == "" && !v.anonymous, p.ClusterNodes < 0 && !v.anonymous:
		return fmt.Errorf("%w: it does not say what it is, so a restart would go unnoticed: permit INFO, "+
			"and in cluster mode CLUSTER INFO, or set Config.AllowUnidentified", errNoVoter)
	case p.Replica:
		v.barred = true
		return fmt.Errorf("%w: it is a replica, and only masters vote", errNoVoter)
	case p.ClusterNodes > 1:
		v.barred = true
		return fmt.Errorf("%w: it is one of %d nodes of a cluster, and holds only some of the keys", errNoVoter, p.ClusterNodes)
	}
	return nil
}

// roll has the server process that each node of a Locker has been found to be.
type roll struct {
	mu  sync.Mutex // guards run
	run []string   // by node; "" if not known
}

// claim notes that node i is the process runID, unless another node is already,
// whose number it then returns with false. Two nodes may change places: the one
// that is refused gives up what it had claimed.
func (r *roll) claim(i int, runID string) (other int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run[i] = ""
	for j, run := range r.run {
		if run == runID {
			return j, false
		}
	}
	r.run[i] = runID
	return i, true
}

// voter is what a lane knows of its node's right to vote. Times are by the
// lane's own clock, which neither a step nor a suspend makes run ahead.
type voter struct {
	need      time.Duration // how long after a start all locks from before it have ended
	maxTTL    time.Duration
	durable   bool // a restart loses nothing
	anonymous bool // a node need not say what it is

	barred bool          // it was no voter when last seen
	run    string        // the process that was met last, "" if none was
	data   string        // and the data set that it had taken over
	until  time.Duration // grants count in rounds that begin from here on
	since  time.Duration // when that happened which it is in quarantine for
	what   string        // what that was
}

// fencedNeed is how long a quarantine lasts at least where there are fences. Those
// that a node has forgotten must have been overtaken by the clock: a second is for
// how far ahead of it they may be, a second for the uptime's precision, and the
// rest for how wrong the clocks may be.
const fencedNeed = 5 * time.Second

func newVoter(cfg Config) voter {
	need := cfg.MaxTTL + cfg.Drift.Over(cfg.MaxTTL)
	// A node counts its uptime in whole seconds, and may be up to a second
	// younger than it says.
	need = (need + time.Second - 1).Truncate(time.Second) + time.Second
	if cfg.Fenced {
		need = max(need, fencedNeed)
	}
	return voter{need: need, maxTTL: cfg.MaxTTL, durable: cfg.DurableNodes, anonymous: cfg.AllowUnidentified}
}

// meet takes note of the process that a new connection has reached.
//
// How long that has been up it says by its wall clock, which may have been
// stepped, most likely soon after it started. So that is believed once, of a
// process that was there before this client: a change that happens in front of
// us is timed by our own clock.
func (v *voter) meet(p Peer, at time.Duration) {
	if p.RunID == "" {
		return // nothing can be known, and that was accepted
	}
	restarted := p.RunID != v.run
	replaced := p.ReplicationID != "" && p.ReplicationID != v.data
	switch {
	case v.barred:
		v.quarantine(at, "became a voter")
	case v.run != "" && !restarted && replaced:
		v.quarantine(at, "had its data replaced")
	case restarted && v.durable:
	case v.run == "":
		v.quarantine(at-max(0, p.Uptime), "restarted")
	case restarted:
		v.quarantine(at, "restarted")
	}
	v.barred = false
	v.run, v.data = p.RunID, p.ReplicationID
}

func (v *voter) quarantine(since time.Duration, what string) {
	v.until, v.since, v.what = since+v.need, since, what
}

// quarantined is why what is granted in a round that began at from does not count, or
// nil. It is the beginning that matters: the fence that the round proposes was
// read from the clock then, and is above all that the node may have forgotten
// only if that had ended.
func (v *voter) quarantined(from, now time.Duration) *QuarantineError {
	if from >= v.until {
		return nil
	}
	return &QuarantineError{
		For:    max(v.until-now, time.Millisecond),
		Why:    fmt.Sprintf("%s %v ago", v.what, rounded(now-v.since)),
		MaxTTL: v.maxTTL,
	}
}
