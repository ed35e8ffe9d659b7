package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule is one of those that fences obey. Unique and Ordered hold whatever clocks
// and pauses do, Successive only while a lease that its holder relies on is still
// on the nodes.
type Rule uint8

// The rules for two leases on one key.
const (
	Unique     Rule = iota // they have different fences
	Ordered                // one asked for after the other had been got has the larger fence
	Successive             // one got after the other had ended has the larger fence
)

// Misorder is a pair of leases on one key whose fences break a rule.
type Misorder struct {
	Rule          Rule
	First, Second Hold
}

func (m Misorder) String() string {
	a, b := m.First, m.Second
	switch m.Rule {
	case Ordered:
		return fmt.Sprintf("a fence went back: holder %d got %q with %s at %v, and holder %d, who asked at %v, got %s at %v",
			a.Holder, a.Key, a.Fence, a.Acquired, b.Holder, b.Called, b.Fence, b.Acquired)
	case Successive:
		return fmt.Sprintf("a fence went back: %v with %s, and holder %d got %s at %v",
			a, a.Fence, b.Holder, b.Fence, b.Acquired)
	}
	return fmt.Sprintf("one fence for two leases: %s for %q, which holder %d got at %v and holder %d at %v",
		a.Fence, a.Key, a.Holder, a.Acquired, b.Holder, b.Acquired)
}

// order judges the fences of holds of one key, which come in the order in which
// they began, and says how many there were. A hold is the second of two pairs
// at most: of one with the same fence, and of one with a larger fence.
func order(holds []*Hold, timingHolds bool) (fenced int, faults []Misorder) {
	holds = slices.DeleteFunc(slices.Clone(holds), func(h *Hold) bool { return h.Fence == 0 })
	if len(holds) == 0 {
		return 0, nil
	}
	byFence := sorted(holds, func(h *Hold) int64 { return int64(h.Fence) })
	for i := 1; i < len(byFence); i++ {
		if first, second := byFence[i-1], byFence[i]; first.Fence == second.Fence {
			faults = append(faults, Misorder{Unique, *first, *second})
		}
	}
	named := make(map[*Hold]bool)
	began := func(h *Hold) time.Duration { return h.Acquired }
	asked := func(h *Hold) time.Duration { return h.Called }
	for first, second := range passed(holds, began, sorted(holds, asked), asked) {
		faults = append(faults, Misorder{Ordered, *first, *second})
		named[second] = true
	}
	if !timingHolds {
		return len(holds), faults
	}
	// One whose validity was over when acquire returned may have had its fence
	// from the nodes long before, so nothing is asked of it. Of later ones it is
	// asked that they pass it: its holder, who knows no better, may show its fence
	// to the resource.
	valid := slices.DeleteFunc(slices.Clone(holds), func(h *Hold) bool { return h.empty() || named[h] })
	for first, second := range passed(sorted(holds, (*Hold).last), (*Hold).last, valid, began) {
		faults = append(faults, Misorder{Successive, *first, *second})
	}
	return len(holds), faults
}

// last is the last moment of a hold. One that was over at once had one moment.
func (h *Hold) last() time.Duration {
	end, _ := h.end()
	return max(end-1, h.Acquired)
}

// passed yields, for each of seconds that has a smaller fence than one of firsts
// that was there before it, the largest such. Both come sorted by the moments
// that decide which was before which.
func passed(firsts []*Hold, was func(*Hold) time.Duration, seconds []*Hold, begins func(*Hold) time.Duration) func(func(first, second *Hold) bool) {
	return func(yield func(first, second *Hold) bool) {
		var largest *Hold
		for _, second := range seconds {
			for len(firsts) > 0 && was(firsts[0]) < begins(second) {
				if largest == nil || firsts[0].Fence > largest.Fence {
					largest = firsts[0]
				}
				firsts = firsts[1:]
			}
			if largest != nil && largest.Fence > second.Fence && !yield(largest, second) {
				return
			}
		}
	}
}

// sorted returns the holds in the order of a number, those with the same one in
// the order in which they began.
func sorted[N cmp.Ordered](holds []*Hold, by func(*Hold) N) []*Hold {
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(by(a), by(b)), cmp.Compare(a.Acquired, b.Acquired), cmp.Compare(a.Holder, b.Holder))
	})
	return holds
}
