package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the machine's monotonic clock, which all processes share: moments that
// several of them write down can be compared. (Those of package time count from a
// moment of each process's own.)
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no machine without it
	}
	return time.Duration(t.Nano())
}
