package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/quorumlock/quorumlock/clock"
)

// Report is what an Audit found out about the nodes of a Locker. It is out of
// date when it is read: it is for people and for alarms, never for deciding who
// may go ahead. As JSON its fields keep their names; fields may be added.
type Report struct {
	// Nodes are in the order in which they were given to New or Dial.
	Nodes []NodeReport `json:"nodes"`
	// Findings are what somebody should know or do, the worst first.
	Findings []Finding `json:"findings"`
	// Voters is how many nodes may vote now, and Quorum how many have to.
	Voters        int  `json:"voters"`
	Quorum        int  `json:"quorum"`
	QuorumMayVote bool `json:"quorum_may_vote"`
}

// NodeReport is what is known of one node.
type NodeReport struct {
	Node string `json:"node"`
	// Votes is whether its grants count at present, and WhyNot why they don't.
	Votes  bool   `json:"votes"`
	WhyNot string `json:"why_not,omitempty"`
	// QuarantinedS is for how much longer its grants don't count because it may
	// have forgotten some; 0 if that is not why.
	QuarantinedS float64 `json:"quarantined_s,omitempty"`
	// Run is the beginning of its run_id: two names with the same are one server.
	Run string `json:"run,omitempty"`
	// Durable is whether it keeps every key through a restart: yes, no or unknown.
	Durable string `json:"durable,omitempty"`
	// ClockOffset is how its clock stands to the middle of the others, this
	// machine's included. (That in Facts is against this machine's alone.)
	ClockOffset *ClockFacts `json:"clock_offset,omitempty"`
	// Facts are what it says of itself; nil if it does not answer.
	Facts *Facts `json:"facts,omitempty"`
}

// Finding is something to know or to do about a node, or about all of them
// together where Node is "".
type Finding struct {
	Severity Severity `json:"severity"`
	Node     string   `json:"node,omitempty"`
	Text     string   `json:"text"`
}

// Severity is how bad a finding is.
type Severity string

const (
	// Problem: a node has no vote, or does not do what the Config relies on.
	Problem Severity = "problem"
	// Warning: it works, and will not always, or the audit could not see.
	Warning Severity = "warning"
	// Note: good to know.
	Note Severity = "note"
)

// Audit asks every node what it is, and says which may vote, which may not and
// why, and what is wrong with them or with the set of them. It is for start-up,
// for an alarm that runs now and then, and for the person who looks.
//
// Each node is asked on a connection of its own, which tries commands that change
// nothing on a key that nobody uses; the lock's own work is not disturbed. A node
// that does not answer is part of the report: it is given its dial timeout, and a
// second, or twice NodeTimeout if that is more, from then on. The error is ctx's if
// that is done first, or ErrClosed; there is no report then.
func (l *Locker) Audit(ctx context.Context) (*Report, error) {
	if !l.begin() {
		return nil, fmt.Errorf("audit: %w", ErrClosed)
	}
	defer l.finish()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("audit: %w", ended(ctx))
	}
	// Nodes are not told ctx's deadline, lest they end a moment before it does,
	// and that looks like their own fault.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	nobodys, err := newToken()
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	key := l.prefix("audit:" + string(nobodys))

	type reply struct {
		node  int
		facts *Facts
		err   error
	}
	came := make(chan reply, len(l.lanes))
	for i, lane := range l.lanes {
		// Close waits for these. Audit does not: a dialer that heeds no context
		// must not keep its caller.
		l.group.Go(func() error {
			facts, err := l.ask(asking, lane.node, key)
			came <- reply{i, facts, err}
			return nil
		})
	}
	answers := make([]answer, len(l.lanes))
	for range l.lanes {
		select {
		case r := <-came:
			answers[r.node] = l.lanes[r.node].answer(r.facts, r.err, l.clock.Now())
		case <-ctx.Done():
			return nil, fmt.Errorf("audit: %w", ended(ctx))
		case <-l.closing:
			return nil, fmt.Errorf("audit: %w", ErrClosed)
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("audit: %w", ended(ctx))
	}
	return judge(answers, l.rules()), nil
}

// ask asks one node for its facts.
func (l *Locker) ask(ctx context.Context, n Node, key string) (*Facts, error) {
	patience := max(dialTimeout, 2*l.nodeTimeout)
	conn, err := n.Connect(ctx, 2*patience) // a call that takes longer than patience ends otherwise
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	inTime, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A call on it ends with its socket, not with a context.
	defer context.AfterFunc(inTime, func() { conn.Close() })()
	facts, err := conn.Facts(inTime, key, l.clock)
	var slow net.Error
	if err != nil && (inTime.Err() != nil || errors.As(err, &slow) && slow.Timeout()) {
		return nil, fmt.Errorf("nothing within %v: %v", patience, err)
	}
	return facts, err
}

// answer puts what a node says of itself, or why it does not, beside what the lane
// has seen of it.
func (l *lane) answer(facts *Facts, err error, now clock.Instant) answer {
	a := answer{node: l.node.String(), facts: facts, err: err, standing: l.standing(now)}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.met, a.run = l.state != connecting, l.voter.run
	return a
}

func (l *Locker) rules() rules {
	return rules{
		maxTTL:       l.cfg.MaxTTL,
		need:         newVoter(l.cfg).need,
		nodeTimeout:  l.nodeTimeout,
		prefixed:     l.cfg.KeyPrefix != "",
		fenced:       l.cfg.Fenced,
		durable:      l.cfg.DurableNodes,
		unidentified: l.cfg.AllowUnidentified,
	}
}
