package sim

import (
	"slices"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/redlock"
)

// trace is a hash of all that happened, in order. Tokens are numbered in the order
// in which they come up, since they are random.
type trace struct {
	sum     uint64
	instant []uint64 // what has happened since nothing moved, in no order
	tokens  map[redlock.Token]uint64
}

const (
	trOp uint64 = iota
	trKill
	trResult
	trGrant
	trExtend
	trLost
	trFault
)

// add notes something.
func (t *trace) add(what ...uint64) {
	sum := uint64(0)
	for _, x := range what {
		sum = mix(sum*31 + x + golden)
	}
	t.instant = append(t.instant, sum)
}

// flush ends an instant, before time goes on: what several goroutines did in it is put
// in an order.
func (t *trace) flush() {
	if len(t.instant) == 0 {
		return
	}
	slices.Sort(t.instant)
	for _, x := range t.instant {
		t.sum = mix(t.sum*31 + x)
	}
	t.instant = t.instant[:0]
}

// op notes what a node has done.
func (t *trace) op(n *node, c *client, op *redlock.Op) {
	w := n.world
	var rise fence.Token
	if op.Reply.Fence != 0 {
		rise = op.Reply.Fence
	}
	t.add(trOp, uint64(w.now), uint64(n.id), uint64(c.id), uint64(op.Kind), hashOf(op.Key), t.token(op.Token),
		uint64(op.Reply.Vote), uint64(rise))
	if w.plan.Verbose {
		w.say("%s: %s's %s of %s %s: %s %v fence %d (was %d)", n.name, c.name, op.Kind, op.Key, op.Token.Digest(), op.Reply.Vote, op.Reply.Err, op.Reply.Fence, op.Fence)
	}
}

// token is a token's number.
func (t *trace) token(token redlock.Token) uint64 {
	if token == "" {
		return 0
	}
	if t.tokens == nil {
		t.tokens = map[redlock.Token]uint64{}
	}
	n, ok := t.tokens[token]
	if !ok {
		n = uint64(len(t.tokens) + 1)
		t.tokens[token] = n
	}
	return n
}

// hashOf is a short text as a number.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
