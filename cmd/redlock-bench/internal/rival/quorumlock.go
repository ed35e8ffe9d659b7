package rival

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/redlock"
)

// leastSlack is what clocks are allowed to differ by in whatever short time, as
// a Config without Drift has it.
const leastSlack = 2 * time.Millisecond

var quorumLock = Lock{
	Name: "quorumlock", Title: "quorumlock", Module: "github.com/quorumlock/quorumlock", Renews: true,
	Setup: "defaults: TTL 10 s, answers waited for 50 ms. DurableNodes on servers that this program starts, which are all too young to vote otherwise.",
	Does: []string{
		"a majority of all nodes",
		"a minority that is dead or hung delays nobody",
		"waiters of one process served in order",
		"its context ends before its validity does",
		"restarted nodes do not vote",
	},
	DoesNot: []string{"order between processes"},
	open:    func(s Site) (Locker, error) { return openQuorum(s, false) },
}

var fencedLock = Lock{
	Name: "quorumlock-fenced", Title: "quorumlock, fenced", Module: quorumLock.Module, Renews: true,
	Setup:   "the same with Fenced",
	Does:    append([]string{"a fence with every lease that rises across the quorum"}, quorumLock.Does...),
	DoesNot: quorumLock.DoesNot,
	open:    func(s Site) (Locker, error) { return openQuorum(s, true) },
}

type quorum struct{ *redlock.Locker }

func openQuorum(s Site, fenced bool) (Locker, error) {
	l, err := redlock.Dial(s.URLs, redlock.Config{
		TTL:          s.TTL,
		Fenced:       fenced,
		KeyPrefix:    s.Prefix,
		DurableNodes: s.Fresh,
		Drift:        clock.Drift{Slack: leastSlack + s.Lead},
		Trace:        s.Trace.redlock(),
	})
	if err != nil {
		return nil, err
	}
	return quorum{l}, nil
}

// Acquire keeps a lease that is not there from becoming an interface that is.
func (q quorum) Acquire(ctx context.Context, key string) (Lease, error) {
	l, err := q.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (t Trace) redlock() *redlock.Trace {
	var to redlock.Trace
	if t.Renewed != nil {
		to.Extended = func(e redlock.ExtendEvent) { t.Renewed(e.Key, e.Err) }
	}
	if t.Lost != nil {
		to.Lost = func(redlock.LostEvent) { t.Lost() }
	}
	return &to
}
