package fencemodel

// Protocol is what nodes do with the messages of an attempt. What clients do is
// the same in all of them.
type Protocol struct {
	Acquire func(n Node, t Token, proposal Counter) (Node, Counter)
	Stamp   func(n Node, t Token, fence Counter) (Node, bool)
	Release func(n Node, t Token, fence Counter) Node // fence is 0 if the attempt chose none
}

// Shipped is what redlock's scripts do.
func Shipped() Protocol {
	return Protocol{
		Acquire: Node.Acquire,
		Stamp:   Node.Stamp,
		Release: func(n Node, t Token, _ Counter) Node {
			n, _ = n.Release(t)
			return n
		},
	}
}
