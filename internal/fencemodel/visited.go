package fencemodel

import "slices"

// visited is every state found so far, in the order in which it was found and
// with the one that it was found from. It is also the queue of the search, and
// what a shortest way is read from.
type visited struct {
	keys  []key
	from  []int32 // a state's number, or none
	slots []int32 // where a key's hash leads: a state's number + 1, or 0
}

const none = -1

func newVisited() *visited { return &visited{slots: make([]int32, 1<<16)} }

// add takes in a state found from another, unless it is known.
func (v *visited) add(k key, from int) {
	if len(v.keys) >= len(v.slots)/4*3 {
		v.grow()
	}
	slot := v.slot(k)
	if v.slots[slot] != 0 {
		return
	}
	v.keys = append(v.keys, k)
	v.from = append(v.from, int32(from))
	v.slots[slot] = int32(len(v.keys))
}

// slot is where k is, or where it belongs.
func (v *visited) slot(k key) uint64 {
	mask := uint64(len(v.slots) - 1)
	slot := k.hash() & mask
	for v.slots[slot] != 0 && v.keys[v.slots[slot]-1] != k {
		slot = (slot + 1) & mask
	}
	return slot
}

func (v *visited) grow() {
	v.slots = make([]int32, 2*len(v.slots))
	for i, k := range v.keys {
		v.slots[v.slot(k)] = int32(i + 1)
	}
}

// way is how state i was found: a first state, and so on to i.
func (v *visited) way(i int) []key {
	var way []key
	for ; i != none; i = int(v.from[i]) {
		way = append(way, v.keys[i])
	}
	slices.Reverse(way)
	return way
}
