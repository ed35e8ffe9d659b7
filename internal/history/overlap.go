package history

import (
	"fmt"
	"math"
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
// What became of the release does not matter: also one of which nobody knows
// whether it reached the nodes may have let the next one in at once.
func (h *Hold) end() (at time.Duration, why string) {
	at, why = never, "never let go"
	if h.Released != 0 {
		at, why = h.Released, "released"
	}
	if h.Lost != 0 && h.Lost < at {
		at, why = h.Lost, "told lost"
	}
	if h.Until != 0 && h.Until < at {
		at, why = h.Until, "validity over"
	}
	return at, why
}

// empty says that validity was over when acquire returned, as it is for a
// holder that was paused just then. Such a hold never was one.
func (h *Hold) empty() bool { return h.Until != 0 && h.Until <= h.Acquired }

// broken says that the record cannot be true.
func (h *Hold) broken() bool { return h.whyBroken() != "" }

func (h *Hold) whyBroken() string {
	switch {
	case h.Released != 0 && h.Released < h.Acquired, h.Lost != 0 && h.Lost < h.Acquired:
		return "it ended before it began"
	case h.Called > h.Acquired:
		return "it was acquired before that was asked for"
	case h.Fence != 0 && !h.Fence.Valid():
		return fmt.Sprintf("its fence %s is none", h.Fence)
	}
	return ""
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

// sweep goes through the holds of one key in the order in which they began. A
// hold that begins before the furthest end seen so far overlaps the one that
// reaches there, and if none does, no two overlap. Each hold is the second of
// one pair at most, so the answer is not larger than the question.
func sweep(holds []*Hold) (overlaps []Overlap) {
	var furthest *Hold
	var reaches time.Duration
	for _, h := range holds {
		if h.empty() {
			continue
		}
		if h.Acquired < reaches {
			overlaps = append(overlaps, Overlap{*furthest, *h})
		}
		if end, _ := h.end(); end > reaches {
			furthest, reaches = h, end
		}
	}
	return overlaps
}
