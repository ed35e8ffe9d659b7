//go:build !unix

package pump

import (
	"errors"
	"net"
)

// socket is none: there are no blocking ones here.
type socket struct{}

var errNoSockets = errors.New("pump: this system has no blocking sockets that Go can use")

func block(*net.TCPConn) (*socket, error) { return nil, errNoSockets }

func (*socket) write([]byte) error { return errNoSockets }
func (*socket) read([]byte) error  { return errNoSockets }
func (*socket) close()             {}
