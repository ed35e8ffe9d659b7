//go:build !unix

package pgproc

import (
	"errors"
	"syscall"
)

func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, errors.ErrUnsupported }
