package fencemodel

// Token is an attempt's proof of ownership. Zero is nobody's.
type Token uint8

// Counter is what a node counts fences with, and a fence. Zero is no fence:
// what a node grants is larger.
type Counter uint8

// Node is what one node keeps of one lock: whose token the lock's key holds,
// and its fence counter. The zero Node is one that knows nothing. The methods
// are the scripts, as functions of that state alone.
type Node struct {
	Owner   Token
	Counter Counter
}

// Acquire is acquire.lua. It returns the node as it is afterwards and the fence
// granted to t, or 0 if the lock is another's. The proposal is the client's
// clock, clamped by the node. A request sent again is granted again and moves
// nothing.
func (n Node) Acquire(t Token, proposal Counter) (Node, Counter) {
	switch n.Owner {
	case t:
		return n, n.Counter
	case 0:
		n = Node{t, max(n.Counter+1, proposal)}
		return n, n.Counter
	default:
		return n, 0
	}
}

// Stamp is stamp.lua. It returns the node as it is afterwards and whether t
// itself has brought the counter to exactly fence while it owned the lock.
func (n Node) Stamp(t Token, fence Counter) (Node, bool) {
	if n.Owner != t || n.Counter > fence {
		return n, false
	}
	n.Counter = fence
	return n, true
}

// Release is release.lua. It returns the node as it is afterwards and whether
// the lock was t's.
func (n Node) Release(t Token) (Node, bool) {
	if n.Owner != t {
		return n, false
	}
	n.Owner = 0
	return n, true
}
