package fencemodel

import "slices"

// key is a state in 128 bits. States that differ only in how nodes and attempts
// are numbered have the same one.
type key struct{ high, low uint64 }

// Widths in bits of what a key is made of: a header for each attempt and a
// column for each node.
const (
	ownerBits   = 2
	counterBits = 4
	sendsBits   = 2
	phaseBits   = 3
	lossesBits  = 2
	headerBits  = phaseBits + 2*counterBits
)

func (m *Model) columnBits() int {
	return ownerBits + counterBits + m.Attempts*(sendsBits+counterBits)
}

func (m *Model) keyBits() int {
	return lossesBits + m.Attempts*headerBits + m.Nodes*m.columnBits()
}

func (k *key) push(x uint64, bits int) {
	k.high = k.high<<bits | k.low>>(64-bits)
	k.low = k.low<<bits | x
}

func (k *key) pop(bits int) uint64 {
	x := k.low & (1<<bits - 1)
	k.low = k.low>>bits | k.high<<(64-bits)
	k.high >>= bits
	return x
}

func (k key) less(than key) bool {
	return k.high < than.high || k.high == than.high && k.low < than.low
}

func (k key) hash() uint64 {
	h := (k.high ^ k.low>>32 ^ k.low<<32) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ k.low) * 0xd6e8feb86659fd93
	return h ^ h>>32
}

func (at *attempt) header() uint64 {
	return uint64(at.phase)<<(2*counterBits) | uint64(at.fence)<<counterBits | uint64(at.floor)
}

// numberings are the ways to number one, two and three attempts.
var numberings = [maxAttempts + 1][][]int{
	1: {{0}},
	2: {{0, 1}, {1, 0}},
	3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
}

// key is the least that the numberings give in which the headers are in order.
func (m *Model) key(s *state) key {
	var headers [maxAttempts]uint64
	for a := range m.Attempts {
		headers[a] = s.attempts[a].header()
	}
	least := key{^uint64(0), ^uint64(0)}
	for _, order := range numberings[m.Attempts] {
		if !slices.IsSortedFunc(order, func(a, b int) int { return int(headers[a]) - int(headers[b]) }) {
			continue
		}
		if k := m.pack(s, order); k.less(least) {
			least = k
		}
	}
	return least
}

// pack numbers the attempts in the given order, and the nodes so that their
// columns are in order.
func (m *Model) pack(s *state, order []int) key {
	var number [maxAttempts + 1]uint64 // by token
	for i, a := range order {
		number[token(a)] = uint64(i + 1)
	}
	var columns [maxNodes]uint64
	for n := range m.Nodes {
		node := s.nodes[n]
		if node.Counter >= 1<<counterBits {
			panic("fencemodel: a counter has outgrown its bits")
		}
		column := number[node.Owner]<<counterBits | uint64(node.Counter)
		for _, a := range order {
			d := s.attempts[a].at[n]
			column = column<<(sendsBits+counterBits) | uint64(d.sends)<<counterBits | uint64(d.heard)
		}
		columns[n] = column
	}
	slices.Sort(columns[:m.Nodes])

	k := key{low: uint64(s.losses)}
	for _, a := range order {
		k.push(s.attempts[a].header(), headerBits)
	}
	for _, column := range columns[:m.Nodes] {
		k.push(column, m.columnBits())
	}
	return k
}

// unpack gives one of the states that have the key.
func (m *Model) unpack(k key) state {
	var s state
	for n := m.Nodes - 1; n >= 0; n-- {
		for a := m.Attempts - 1; a >= 0; a-- {
			d := &s.attempts[a].at[n]
			d.heard = Counter(k.pop(counterBits))
			d.sends = uint8(k.pop(sendsBits))
		}
		s.nodes[n].Counter = Counter(k.pop(counterBits))
		s.nodes[n].Owner = Token(k.pop(ownerBits))
	}
	for a := m.Attempts - 1; a >= 0; a-- {
		at := &s.attempts[a]
		at.floor = Counter(k.pop(counterBits))
		at.fence = Counter(k.pop(counterBits))
		at.phase = phase(k.pop(phaseBits))
	}
	s.losses = uint8(k.pop(lossesBits))
	return s
}
