package history

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// Append is a guarded append as its caller saw it. It is OK when it was
// acknowledged, and Fail when it is certain that nothing was done, as after a
// refusal.
type Append struct {
	Entry
	Holder, Lease int // of the fence

	Called   time.Duration
	Returned time.Duration // 0 if it did not
	Outcome  Outcome
}

// Misplaced is an element of a guarded store with which something is wrong.
type Misplaced struct {
	Entry
	What string
}

func (m Misplaced) String() string {
	return fmt.Sprintf("element %q of %q, fence %s: %s", m.Element, m.Key, m.Fence, m.What)
}

// place is where an element is looked for.
type place struct{ key, element string }

// list is how far the list of one key has been looked through.
type list struct {
	largest fence.Token
	under   *Append // the last under the largest fence
	latest  *Append // the one of all so far that was called last
}

// audit compares what clients asked a guarded store for with its log. What was
// acknowledged is there, once, under the fence of the lease that appended it. What
// certainly failed is not. Along a list fences do not fall, so that the elements
// of one fence are next to each other, and they are of one lease. What was called
// after something had been acknowledged is behind it.
func audit(appends []Append, log []Entry) (faults []Misplaced) {
	asked := make(map[place]*Append, len(appends))
	for i := range appends {
		a := &appends[i]
		asked[place{a.Key, a.Element}] = a
	}
	lists := make(map[string]*list)
	seen := make(map[place]bool, len(log))
	for _, e := range log {
		l := lists[e.Key]
		if l == nil {
			l = new(list)
			lists[e.Key] = l
		}
		at := place{e.Key, e.Element}
		what := "it is there twice"
		if !seen[at] {
			what = l.next(e, asked[at])
		}
		seen[at] = true
		if what != "" {
			faults = append(faults, Misplaced{e, what})
		}
	}
	for _, a := range appends {
		if a.Outcome == OK && !seen[place{a.Key, a.Element}] {
			faults = append(faults, Misplaced{a.Entry, fmt.Sprintf("holder %d was told at %v that it is there, and it is not", a.Holder, a.Returned)})
		}
	}
	return faults
}

// next looks at the next element of a list, which a asked for, and says what is
// wrong with it.
func (l *list) next(e Entry, a *Append) (what string) {
	if a == nil {
		return "nobody has appended it"
	}
	switch {
	case !e.Fence.Valid():
		what = "that is no fence"
	case a.Fence != e.Fence:
		what = fmt.Sprintf("holder %d appended it under fence %s", a.Holder, a.Fence)
	case a.Outcome == Fail:
		what = fmt.Sprintf("holder %d was told at %v that it is not there", a.Holder, a.Returned)
	case e.Fence < l.largest:
		what = fmt.Sprintf("it stands behind fence %s", l.largest)
	case e.Fence == l.largest && l.under != nil && (a.Holder != l.under.Holder || a.Lease != l.under.Lease):
		what = fmt.Sprintf("it is of lease %d of holder %d, and the same fence was lease %d of holder %d before",
			a.Lease, a.Holder, l.under.Lease, l.under.Holder)
	case a.Outcome == OK && l.latest != nil && a.Returned < l.latest.Called:
		what = fmt.Sprintf("it was acknowledged at %v and stands behind %q, which was not called until %v",
			a.Returned, l.latest.Element, l.latest.Called)
	}
	if e.Fence >= l.largest {
		l.largest, l.under = e.Fence, a
	}
	if l.latest == nil || a.Called > l.latest.Called {
		l.latest = a
	}
	return what
}
