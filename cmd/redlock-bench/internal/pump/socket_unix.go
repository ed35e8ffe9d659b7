//go:build unix

package pump

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// socket is one that blocks the thread that uses it.
type socket struct {
	file *os.File
	fd   int
}

// block takes a connection from the runtime, which would otherwise wait for it
// with the poller: that costs more than the system call.
func block(conn *net.TCPConn) (*socket, error) {
	file, err := conn.File()
	if err != nil {
		return nil, err
	}
	s := &socket{file: file, fd: int(file.Fd())}
	// The flag belongs to the socket and not to the descriptor: conn is not used
	// any more.
	err = syscall.SetNonblock(s.fd, false)
	patience := syscall.NsecToTimeval(hang.Nanoseconds())
	err = errors.Join(err,
		syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience),
		syscall.SetsockoptTimeval(s.fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &patience))
	if err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) write(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Write(s.fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		b = b[n:]
	}
	return nil
}

// read fills b.
func (s *socket) read(b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(s.fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return nil
}

func (s *socket) close() { s.file.Close() }
