package clock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A system call for every reading would cost more than all the rest of an
// acquire. While the machine is awake the boot clock goes with the monotonic
// one, so a recent sample is carried on by that: for bootAge, and as long as the
// wall clock has gone along as well, which a suspend would have moved.
const (
	bootAge  = 10 * time.Millisecond
	bootSlip = time.Millisecond
)

// sample is the boot clock at a moment.
type sample struct {
	at   time.Time
	boot time.Duration
}

var lastSample atomic.Pointer[sample]

// boottime is the time since boot, suspended time included, at now.
func boottime(now time.Time) time.Duration {
	if s := lastSample.Load(); s != nil {
		mono, wall := now.Sub(s.at), now.Round(0).Sub(s.at.Round(0))
		if carries(mono, wall) {
			return s.boot + mono
		}
	}
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		// Seccomp profiles have been seen to refuse it; Upper then still has
		// the wall clock to notice a suspend by.
		return 0
	}
	s := &sample{at: now, boot: time.Duration(ts.Nano())}
	lastSample.Store(s)
	return s.boot
}

// carries reports whether a sample still tells the boot clock when the two other
// clocks have gone on by mono and wall.
func carries(mono, wall time.Duration) bool {
	return mono >= 0 && mono < bootAge && (wall-mono).Abs() < bootSlip
}
