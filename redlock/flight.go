package redlock

// maxFlight is how many operations go to a node in one flight. On a slow link it
// bounds how many leases can be kept alive: a node does so many per round trip.
const maxFlight = 512

// A flight carries operations in the order of their kinds, whatever the order
// they were queued in. So that this never lets a key's operations overtake each
// other, a flight ends before
//   - anything for a key after that key's release: an acquire would be carried
//     out before the release it came after, and
//   - a second acquire of a key, of which one at most may be granted.
//
// The other orders are safe: a release queued after its acquire still comes
// after it, and an extend never creates a key.

// cutter finds where a flight ends.
type cutter struct {
	seen map[string]OpKind // the last kind queued for a key that matters to the cut
}

// fits reports whether op may join the flight that the operations before it
// have joined.
func (c *cutter) fits(op *Op) bool {
	last, seen := c.seen[op.Key]
	switch {
	case seen && last == OpRelease:
		return false
	case seen && last == OpAcquire && op.Kind == OpAcquire:
		return false
	}
	if op.Kind == OpAcquire || op.Kind == OpRelease {
		if c.seen == nil {
			c.seen = make(map[string]OpKind)
		}
		c.seen[op.Key] = op.Kind
	}
	return true
}

func (c *cutter) reset() { clear(c.seen) }

// arrange puts the calls of a flight in the order of their kinds, each kind in
// the order of queueing, into dst.
func arrange(dst, calls []*call) []*call {
	for kind := OpAcquire; kind <= OpRelease; kind++ {
		for _, c := range calls {
			if c.op.Kind == kind {
				dst = append(dst, c)
			}
		}
	}
	return dst
}
