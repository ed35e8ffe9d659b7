package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime is the time since boot, suspended time included.
func boottime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		// Seccomp profiles have been seen to refuse it; Upper then still has
		// the wall clock to notice a suspend by.
		return 0
	}
	return time.Duration(ts.Nano())
}
