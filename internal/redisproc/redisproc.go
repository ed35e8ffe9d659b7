// Package redisproc runs a real redis-server or valkey-server as a child
// process, so that what happens to servers can be done to one: it can be
// stopped and continued, killed, and restarted with its data, without, or with
// the tail of its append-only file torn off; its clock can be set and run wrong.
// A [Proxy] does to its clients' connections what networks do.
//
// A server listens on 127.0.0.1 only, in a directory of its own, and keeps
// nothing on disk unless it is asked to. On Linux it ends with the process
// that started it, however that one ends.
package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say what Start starts. The zero value is a server on a free port
// that keeps nothing on disk.
type Options struct {
	// Port is the TCP port to listen on. Zero means one that is free.
	Port int

	// UnixSocket makes the server listen on a Unix socket as well; see
	// [Server.Socket].
	UnixSocket bool

	// Dir is where the server's own directory is made. Empty means the
	// system's directory for temporary files. A long Dir may be too long for
	// a Unix socket.
	Dir string

	// SkewedClock gives the server a wall clock of its own, which is right until
	// [Server.StepClock] or [Server.SetClockRate] says otherwise. It takes Linux,
	// a C compiler, and a server that is linked dynamically; see [RequireClock].
	SkewedClock bool

	// Args come last on the server's command line, so they win over what this
	// package sets: "--appendonly", "yes". They must not change the port, the
	// directory, the log or its level, which this package reads.
	Args []string
}

// A Server is one child process, or the place of one that has been killed.
// Its methods may be called from several goroutines at once; they take turns.
type Server struct {
	binary string
	args   []string
	port   int
	dir    string
	socket string

	mu     sync.Mutex // guards what follows
	child  *child
	clock  *wallClock // nil for the machine's
	closed bool
}

// ErrClosed says that the server has been closed and cannot run again.
var ErrClosed = errors.New("redisproc: server closed")

// portTries is how many free ports Start tries before it gives up: another
// process may take a port between its choice and the server's use of it.
const portTries = 20

// Find is the path of the server program: that in the environment variable
// REDIS_SERVER, else redis-server, else valkey-server from PATH.
func Find() (string, error) {
	if named := os.Getenv("REDIS_SERVER"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("REDIS_SERVER: %w", err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH, and REDIS_SERVER is not set")
}

// Start runs a server and returns once it answers PING over TCP. When ctx ends
// first, the server is ended and the error wraps the context's. The caller
// closes the server.
func Start(ctx context.Context, o Options) (*Server, error) {
	binary, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "redisproc-")
	if err != nil {
		return nil, err
	}
	s := &Server{binary: binary, args: o.Args, port: o.Port, dir: dir}
	if o.UnixSocket {
		s.socket = filepath.Join(dir, "redis.sock")
	}
	if o.SkewedClock {
		if s.clock, err = newWallClock(o.Dir); err != nil {
			return nil, errors.Join(fmt.Errorf("a clock of its own: %w", err), s.remove())
		}
	}
	for try := 1; ; try++ {
		if o.Port == 0 {
			if s.port, err = freePort(); err != nil {
				break
			}
		}
		if err = s.launch(ctx); err == nil {
			return s, nil
		}
		if o.Port != 0 || try == portTries || !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, errors.Join(err, s.remove())
}

// Addr is the server's TCP address. It stays the same through restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Socket is the path of the Unix socket, empty without [Options.UnixSocket].
func (s *Server) Socket() string { return s.socket }

// PID is the process id of the child that runs now, or of the last that ran.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.pid()
}

// Log is the end of what the child that runs now, or the last that ran, has
// written about itself.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.log.String()
}

// Stop halts the process as SIGSTOP does: connections stay open and the kernel
// still accepts new ones, but nothing is read or answered. On Linux the process
// has come to a halt when Stop returns.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.stop()
}

// Cont lets a stopped process run again. For one that was not stopped it does
// nothing.
func (s *Server) Cont() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.cont()
}

// Kill ends the process as SIGKILL does, stopped or not, and returns when it is
// gone. Killing a dead one does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.kill()
}

// Data says what a restarted server finds of what it held before.
type Data int

const (
	// Keep restarts with the data. A server that still runs writes a snapshot
	// first; one that was killed comes back with what its own settings made it
	// write while it ran, which by default is nothing.
	Keep Data = iota

	// Wipe restarts empty, as after the loss of a disk.
	Wipe
)

// Restart ends the process if it still runs and starts it again on the same
// port with the same arguments. It returns once the new process answers, or
// with an error that wraps the context's; then none runs.
func (s *Server) Restart(ctx context.Context, data Data) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if data == Keep && s.child.running() {
		if err := save(ctx, s.Addr()); err != nil {
			return errors.Join(fmt.Errorf("restart %s: snapshot: %w", s.Addr(), err), s.child.kill())
		}
	}
	if err := s.child.kill(); err != nil {
		return err
	}
	if data == Wipe {
		if err := empty(s.dir); err != nil {
			return err
		}
	}
	for {
		err := s.launch(ctx)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		// While the server was gone, somebody's outgoing connection may have
		// been given its port. Such connections end.
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close ends the process and removes its directory. Closing twice is harmless.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.child.kill(), s.remove())
}

// remove takes away what the server has on disk.
func (s *Server) remove() error {
	err := os.RemoveAll(s.dir)
	if s.clock != nil {
		err = errors.Join(err, s.clock.close())
	}
	return err
}

// launch starts a child and waits until it answers. With an error none runs.
func (s *Server) launch(ctx context.Context) error {
	args := []string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--protected-mode", "yes",
		"--save", "", "--appendonly", "no",
		"--dir", s.dir, "--daemonize", "no", "--logfile", "",
	}
	if s.socket != "" {
		args = append(args, "--unixsocket", s.socket)
	}
	var env []string
	if s.clock != nil {
		env = s.clock.environment()
	}
	c, err := spawn(s.binary, append(args, s.args...), env)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.binary, err)
	}
	s.child = c
	if err := c.ready(ctx, s.Addr()); err != nil {
		return errors.Join(fmt.Errorf("start %s on %s: %w", s.binary, s.Addr(), err), c.kill())
	}
	return nil
}

// freePort is a port nobody listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// empty removes what is in dir, and leaves dir.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
