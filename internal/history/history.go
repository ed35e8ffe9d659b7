// Package history judges a recorded run of locks: whether two holders ever had
// one key at the same time, whether fences rose, whether a resource that checks
// fences kept what it had acknowledged, and whether anything was left on the
// nodes.
//
// Times are durations since the start of the run on one monotonic clock, so
// only holders of one machine can be judged together.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// Hold is one lease as its holder saw it. Zero in the last three fields means
// that it did not happen, which makes the hold last longer and never hides an
// overlap.
type Hold struct {
	Key    string
	Holder int         // who held it: a number of the run's own choice
	Fence  fence.Token // 0 for a lease that had none: its order is not judged

	Called   time.Duration // just before acquire was called; 0 as if it always had been
	Acquired time.Duration // acquire had returned
	Until    time.Duration // validity's end, as known when acquire or its last extension had returned
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
	Holds   []Hold
	Left    []Left
	Appends []Append // what clients asked a guarded store for
	Log     []Entry  // what it had accepted at the end, in its order

	// TimingBroken says that clocks, pauses or delays of the run were worse than
	// the lock allows for. Holds may then overlap, and leases are not ordered by
	// when they ended. Whatever needs no timing is judged all the same.
	TimingBroken bool
}

// Verdict is what is wrong with a run. Without faults it is clean.
type Verdict struct {
	Holds        int // holds judged
	Keys         int // keys they were of
	Fenced       int // holds whose fences were judged
	Appended     int // elements of the guarded store's log
	TimingBroken bool
	Overlaps     []Overlap // no fault where timing was broken
	Misordered   []Misorder
	Broken       []Hold // holds that cannot have been
	Left         []Left
	Misplaced    []Misplaced // in the guarded store
}

// Judge decides about a run, in O(n log n) of its holds, which it sorts, and of
// its appends.
func (r Run) Judge() Verdict {
	v := Verdict{Holds: len(r.Holds), Appended: len(r.Log), TimingBroken: r.TimingBroken, Left: r.Left}
	slices.SortFunc(r.Holds, byBeginning)
	for holds := r.Holds; len(holds) > 0; v.Keys++ {
		n := 1
		for n < len(holds) && holds[n].Key == holds[0].Key {
			n++
		}
		sound := make([]*Hold, 0, n)
		for i := range holds[:n] {
			if holds[i].broken() {
				v.Broken = append(v.Broken, holds[i])
				continue
			}
			sound = append(sound, &holds[i])
		}
		v.Overlaps = append(v.Overlaps, sweep(sound)...)
		fenced, misordered := order(sound, !r.TimingBroken)
		v.Fenced += fenced
		v.Misordered = append(v.Misordered, misordered...)
		holds = holds[n:]
	}
	v.Misplaced = audit(r.Appends, r.Log)
	return v
}

// byBeginning sorts holds by key, and those of a key by when they began.
func byBeginning(a, b Hold) int {
	if a.Key != b.Key {
		return cmp.Compare(a.Key, b.Key)
	}
	if a.Acquired != b.Acquired {
		return cmp.Compare(a.Acquired, b.Acquired)
	}
	// Of those that began together the longest comes first: one that was over
	// at once would otherwise pass before it.
	aEnd, _ := a.end()
	bEnd, _ := b.end()
	return cmp.Compare(bEnd, aEnd)
}

// Clean says that nothing is wrong.
func (v Verdict) Clean() bool {
	return (len(v.Overlaps) == 0 || v.TimingBroken) &&
		len(v.Misordered) == 0 && len(v.Broken) == 0 && len(v.Left) == 0 && len(v.Misplaced) == 0
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
	if !v.TimingBroken {
		say(len(v.Overlaps), "overlaps", func(i int) string { return v.Overlaps[i].String() })
	}
	say(len(v.Misordered), "fences out of order", func(i int) string { return v.Misordered[i].String() })
	say(len(v.Broken), "impossible holds", func(i int) string {
		return fmt.Sprintf("%v: %s", v.Broken[i], v.Broken[i].whyBroken())
	})
	say(len(v.Left), "keys left", func(i int) string {
		return fmt.Sprintf("key %q was left on %s", v.Left[i].Key, v.Left[i].Node)
	})
	say(len(v.Misplaced), "faults of the store", func(i int) string { return v.Misplaced[i].String() })
	return faults
}
