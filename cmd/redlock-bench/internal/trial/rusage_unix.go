//go:build unix

package trial

import (
	"syscall"
	"time"
)

// ownCPU is the processor time of this process.
func ownCPU() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
