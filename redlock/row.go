package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

const (
	// courtesy is how long a process lets others go first once its row is over: long
	// enough for one of them to ask.
	courtesy = 16 * time.Millisecond

	longestRow = 16          // leases, where others want the key
	quietRow   = time.Second // where nobody seems to
	enough     = 8           // rows without anybody coming, and rivals are gone
	maxRows    = 1000        // that a line remembers
	gapEvery   = 4           // leases, where nobody is known to
)

// row is how often a key has been won by one process, with no other in between as
// far as that process knows. Since its next goroutine asks right behind the release,
// others hardly ever find the key free, and would wait for as long as this process
// wants it: so a row ends.
type row struct {
	began, last clock.Instant // when its first lease was won, and when its last one ended
	leases      int
	limit       int // of leases; 0 if no other process is known to want the key
	alone       int // how many rows before this one ended without anybody coming
}

// next is the row with one more lease. waiting is how many stand in line. One that
// took more than one attempt had rivals: it is the first of a new row, in which those
// who wait now get their turn.
func (r row) next(lease *Lease, waiting int) row {
	switch won := lease.won; {
	case lease.attempts > 1:
		return row{won, won, 1, min(1+waiting, longestRow), 0}
	case r.leases == 0 || r.over(won) && r.alone == enough:
		return row{won, won, 1, 0, 0}
	case r.over(won):
		return row{won, won, 1, r.limit, r.alone + 1}
	default:
		return row{r.began, won, r.leases + 1, r.limit, r.alone}
	}
}

// met is the row once a node has denied one of its leases, which others had there: they
// came while the key was free, and more cannot be known of them.
func (r row) met(waiting int) row {
	r.alone = 0
	if r.limit == 0 {
		r.limit = min(1+waiting, longestRow)
	}
	return r
}

// leavesGap reports whether others may find the key free after this lease, which the
// next one's acquire would follow at once: that is how a process that is not known to
// have rivals meets them.
func (r row) leavesGap() bool { return r.limit == 0 && r.leases%gapEvery == gapEvery-1 }

// over reports whether others should go first. After a pause they have had the
// chance.
func (r row) over(now clock.Instant) bool {
	switch {
	case r.leases == 0 || now.Lower(r.last) >= quietRow:
		return false
	case r.limit == 0:
		return now.Lower(r.began) >= quietRow
	}
	return r.leases >= r.limit
}
