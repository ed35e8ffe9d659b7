package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Overlap is a pair of holds of one key of which Second began while First
// lasted.
type Overlap struct{ First, Second Hold }

// never is later than every moment of a run.
const never = time.Duration(math.MaxInt64)

// end is when a hold was over, and why. From the moment acquire returned the
// holder may act; it may not once it has called Release, once validity has
// ended, or once it has been told that the lease is lost, whichever is first.
func (h Hold) end() (at time.Duration, why string) {
	at, why = never, "never let go"
	for _, e := range []struct {
		at  time.Duration
		why string
	}{{h.Released, "released"}, {h.Lost, "told lost"}, {h.Until, "validity over"}} {
		if e.at != 0 && e.at < at {
			at, why = e.at, e.why
		}
	}
	return at, why
}

// empty says that validity was over when acquire returned, as it is for a
// holder that was paused just then. Such a hold never was one.
func (h Hold) empty() bool { return h.Until != 0 && h.Until <= h.Acquired }

// broken says that the record cannot be true.
func (h Hold) broken() bool {
	return h.Released != 0 && h.Released < h.Acquired || h.Lost != 0 && h.Lost < h.Acquired
}

func (h Hold) String() string {
	at, why := h.end()
	if at == never {
		return fmt.Sprintf("holder %d had %q from %v on and %s", h.Holder, h.Key, h.Acquired, why)
	}
	return fmt.Sprintf("holder %d had %q from %v to %v (%s)", h.Holder, h.Key, h.Acquired, at, why)
}

func (o Overlap) String() string {
	text := fmt.Sprintf("two holders at once: %v, and holder %d got it at %v", o.First, o.Second.Holder, o.Second.Acquired)
	if at, _ := o.First.end(); at != never {
		text += fmt.Sprintf(", %v too early", at-o.Second.Acquired)
	}
	return text
}

// sweep goes through the holds of each key in the order in which they began.
// A hold that begins before the furthest end seen so far overlaps the one that
// reaches there, and if none does, no two overlap. Each hold is the second of
// one pair at most, so the answer is not larger than the question.
func sweep(holds []Hold) (keys int, broken []Hold, overlaps []Overlap) {
	slices.SortFunc(holds, func(a, b Hold) int {
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
	})
	var furthest Hold
	var reaches time.Duration
	for i, h := range holds {
		end, _ := h.end()
		if i == 0 || h.Key != holds[i-1].Key {
			keys++
			furthest, reaches = Hold{}, 0
		}
		switch {
		case h.broken():
			broken = append(broken, h)
			continue
		case h.empty():
			continue
		}
		if h.Acquired < reaches {
			overlaps = append(overlaps, Overlap{furthest, h})
		}
		if end > reaches {
			furthest, reaches = h, end
		}
	}
	return keys, broken, overlaps
}
