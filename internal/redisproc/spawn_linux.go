package redisproc

import (
	"syscall"
	"unsafe"
)

// attributes put the child into a process group of its own, so that an
// interrupt typed at the terminal reaches only its parent, who may still need
// it; and let it end with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitHalt returns when every thread of a process that was told to stop has
// halted, or the process has ended.
func (c *child) awaitHalt() {
	// The end, if that is what comes, is left to Wait: that is what noWait says.
	const byPID, stopped, exited, noWait = 1, 2, 4, 0x1000000
	var info [128]byte // a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(c.pid()),
			uintptr(unsafe.Pointer(&info)), stopped|exited|noWait, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
