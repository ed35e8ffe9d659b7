//go:build unix

package redisproc

import (
	"fmt"
	"syscall"
)

func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	c.awaitHalt()
	return nil
}

func (c *child) cont() error {
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue: %w", err)
	}
	return nil
}
