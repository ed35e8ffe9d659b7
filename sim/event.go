package sim

import (
	"container/heap"
	"time"
)

// event is something that will happen at a moment.
type event struct {
	at    time.Duration
	rank  uint64  // which of two at one nanosecond comes first
	whose *client // it happens in this process, and so not while that is paused
	timer bool    // it is a timer of whose, and stands still while that is suspended
	quiet bool    // it wakes no goroutine
	do    func()  // with world.mu held
	index int     // in the heap, plus one; 0 if it is not there
}

// agenda is the heap of all events to come.
type agenda []*event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].rank < a[j].rank
}
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i+1, j+1
}
func (a *agenda) Push(x any) {
	e := x.(*event)
	*a = append(*a, e)
	e.index = len(*a)
}
func (a *agenda) Pop() any {
	old := *a
	last := len(old) - 1
	e := old[last]
	old[last] = nil
	*a = old[:last]
	e.index = 0
	return e
}

// set plans an event anew.
func (a *agenda) set(e *event) {
	if e.index > 0 {
		heap.Fix(a, e.index-1)
	} else {
		heap.Push(a, e)
	}
}

// drop takes an event back, if it is still to come.
func (a *agenda) drop(e *event) {
	if e.index > 0 {
		heap.Remove(a, e.index-1)
	}
}
