//go:build unix && !linux

package redisproc

import "syscall"

// attributes put the child into a process group of its own, so that an
// interrupt typed at the terminal reaches only its parent, who may still need
// it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitHalt does nothing: a process halts soon after it has been told to.
func (c *child) awaitHalt() {}
