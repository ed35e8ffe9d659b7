//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart puts a program into a group of its own, so that an interrupt at the terminal
// does not end it halfway.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
