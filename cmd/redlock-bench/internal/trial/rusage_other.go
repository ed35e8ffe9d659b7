//go:build !unix

package trial

import "time"

// ownCPU is not known here.
func ownCPU() (time.Duration, bool) { return 0, false }
