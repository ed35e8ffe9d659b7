// Package history judges a recorded run of locks: whether two holders ever had
// one key at the same time, and whether anything was left on the nodes.
//
// Times are durations since the start of the run on one monotonic clock, so
// only holders of one machine can be judged together.
package history

import (
	"fmt"
	"time"
)

// Hold is one lease as its holder saw it. Zero in the last three fields means
// that it did not happen, which makes the hold last longer and never hides an
// overlap.
type Hold struct {
	Key    string
	Holder int // who held it: a number of the run's own choice

	Acquired time.Duration // acquire had returned
	Until    time.Duration // validity's end, as known when acquire had returned
	Released time.Duration // just before Release was called
	Lost     time.Duration // the holder was told that it is lost
}

// Left is a key of the run that was still on a node after everything had been
// released and closed.
type Left struct {
	Node string
	Key  string
}

// Run is what was recorded.
type Run struct {
	Holds []Hold
	Left  []Left
}

// Verdict is what is wrong with a run. Without faults it is clean.
type Verdict struct {
	Holds    int // holds judged
	Keys     int // keys they were of
	Overlaps []Overlap
	Broken   []Hold // holds that cannot have been: they ended before they began
	Left     []Left
}

// Judge decides about a run, in O(n log n) of its holds, which it sorts.
func (r Run) Judge() Verdict {
	v := Verdict{Holds: len(r.Holds), Left: r.Left}
	v.Keys, v.Broken, v.Overlaps = sweep(r.Holds)
	return v
}

// Clean says that nothing is wrong.
func (v Verdict) Clean() bool {
	return len(v.Overlaps) == 0 && len(v.Broken) == 0 && len(v.Left) == 0
}

// spelledOut is how many faults of each kind Faults gives in full.
const spelledOut = 5

// Faults says in words what is wrong, the first few of each kind in full and
// the rest by number. For a clean run there are none.
func (v Verdict) Faults() []string {
	var faults []string
	say := func(n int, what string, nth func(int) string) {
		for i := range min(n, spelledOut) {
			faults = append(faults, nth(i))
		}
		if n > spelledOut {
			faults = append(faults, fmt.Sprintf("and %d more %s", n-spelledOut, what))
		}
	}
	say(len(v.Overlaps), "overlaps", func(i int) string { return v.Overlaps[i].String() })
	say(len(v.Broken), "impossible holds", func(i int) string {
		return fmt.Sprintf("%v: it ended before it began", v.Broken[i])
	})
	say(len(v.Left), "keys left", func(i int) string {
		return fmt.Sprintf("key %q was left on %s", v.Left[i].Key, v.Left[i].Node)
	})
	return faults
}
