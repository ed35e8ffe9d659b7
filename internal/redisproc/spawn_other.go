//go:build !unix

package redisproc

import (
	"errors"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func (c *child) stop() error { return errors.ErrUnsupported }

func (c *child) cont() error { return errors.ErrUnsupported }
