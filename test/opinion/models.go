package opinion

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// state is that of a key.
type state struct {
	held          bool
	client, lease int // who holds it
	last          fence.Token
}

func (s state) String() string {
	text := "free"
	if s.held {
		text = fmt.Sprintf("client %d, lease %d", s.client, s.lease)
	}
	if s.last != 0 {
		text += fmt.Sprintf(" (%s)", s.last)
	}
	return text
}

// fences is a register of the last fence: an acquire raises it.
var fences = model{
	Model: describe(func(s state, do step) (bool, state) {
		return do.fence > s.last, state{last: do.fence}
	}),
	operations: func(all []*lease) (operations []porcupine.Operation) {
		for _, l := range all {
			if l.outcome == history.OK && l.fence != 0 {
				operations = append(operations, operation(step{client: l.client, lease: l.number, fence: l.fence}, l.called, l.got))
			}
		}
		return operations
	},
}

// leases is a lock: it is acquired when it is free, with a larger fence if with
// any, and then it is its holder's until that one's lease is over.
var leases = model{
	Model: describe(func(s state, do step) (bool, state) {
		if do.over != "" {
			return s.held && s.client == do.client && s.lease == do.lease, state{last: s.last}
		}
		next := state{held: true, client: do.client, lease: do.lease, last: max(s.last, do.fence)}
		return !s.held && (do.fence == 0 || do.fence > s.last), next
	}),
	operations: func(all []*lease) (operations []porcupine.Operation) {
		for _, l := range all {
			from, why, answered := l.over()
			if l.outcome != history.OK || l.until <= l.got {
				continue
			}
			if answered == 0 {
				answered = l.nextGrant(all, from)
			}
			operations = append(operations,
				operation(step{client: l.client, lease: l.number, fence: l.fence}, l.called, l.got),
				operation(step{client: l.client, lease: l.number, over: why}, from, answered))
		}
		return operations
	},
}

// nextGrant is when another got the key, at or after a moment: by then a lease
// that nobody releases has to be over. If nobody did, it is the end of the run.
func (l *lease) nextGrant(all []*lease, from time.Duration) time.Duration {
	next := l.end
	for _, o := range all {
		if o != l && o.outcome == history.OK && o.got >= from {
			next = min(next, o.got)
		}
	}
	return next
}

func operation(do step, from, to time.Duration) porcupine.Operation {
	return porcupine.Operation{ClientId: do.client, Input: do, Call: int64(from), Return: int64(to)}
}

// describe makes a model of what a step does to a state.
func describe(next func(state, step) (bool, state)) porcupine.Model {
	return porcupine.Model{
		Init:              func() any { return state{} },
		Step:              func(s, in, _ any) (bool, any) { return next(s.(state), in.(step)) },
		DescribeOperation: func(in, _ any) string { return in.(step).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}
