package fencemodel

// FarEnough is the obvious protocol: a stamp is good wherever the counter is at
// least the fence, whoever brought it there.
func FarEnough() Protocol {
	p := Shipped()
	p.Stamp = func(n Node, _ Token, fence Counter) (Node, bool) {
		n.Counter = max(n.Counter, fence)
		return n, true
	}
	return p
}

// OwnedFarEnough has a stamp check who owns the lock, but not who brought the
// counter past the fence.
func OwnedFarEnough() Protocol {
	p := Shipped()
	p.Stamp = func(n Node, t Token, fence Counter) (Node, bool) {
		if n.Owner != t {
			return n, false
		}
		n.Counter = max(n.Counter, fence)
		return n, true
	}
	return p
}

// Unowned has a stamp check that it raises the counter itself, but not who owns
// the lock.
func Unowned() Protocol {
	p := Shipped()
	p.Stamp = func(n Node, _ Token, fence Counter) (Node, bool) {
		if n.Counter >= fence {
			return n, false
		}
		n.Counter = fence
		return n, true
	}
	return p
}

// ResendCounts moves the counter once more when a request is sent again.
func ResendCounts(p Protocol) Protocol {
	p.Acquire = func(n Node, t Token, proposal Counter) (Node, Counter) {
		if n.Owner == t {
			n.Owner = 0
		}
		return n.Acquire(t, proposal)
	}
	return p
}

// ReleaseRaises brings the counter up to the fence in release, even where
// another owns the lock.
func ReleaseRaises(p Protocol) Protocol {
	p.Release = func(n Node, t Token, fence Counter) Node {
		n, _ = n.Release(t)
		n.Counter = max(n.Counter, fence)
		return n
	}
	return p
}
