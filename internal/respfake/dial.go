package respfake

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Dialer connects to this server whatever the address; network and address only
// name the remote end. It fits Dialer of go-redis' Options. A dial to a
// refusing or closed server fails like one to a port nobody listens on; to a
// black hole it fails when ctx ends or the server is closed, and not before.
func (s *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dial
}

func (s *Server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	remote := address{network, addr}
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err}
	}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	if err := ctx.Err(); err != nil {
		return fail(err)
	}

	s.mu.Lock()
	if !s.closed && s.blackhole {
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-s.done:
			return fail(refused)
		}
	}
	defer s.mu.Unlock()
	if s.closed || s.refuse {
		return fail(refused)
	}
	return s.accept(remote), nil
}

// accept makes both ends of a connection. A stopped process does not hinder it:
// the kernel accepts on its behalf.
func (s *Server) accept(remote address) *conn {
	s.accepted++
	s.lastID++
	c := &conn{
		srv:     s,
		local:   address{remote.network, fmt.Sprintf("127.0.0.1:%d", 30000+s.accepted)},
		remote:  remote,
		changed: make(chan struct{}),
	}
	c.ses = &session{id: s.lastID, peer: c, proto: 2, user: s.firstUser()}
	s.sessions[c.ses.id] = c.ses
	return c
}
