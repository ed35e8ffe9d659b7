// Package pgproc runs a real PostgreSQL server as a child process of a test.
//
// A server has a data directory of its own, which is made for it and removed with
// it, and listens on a Unix socket beside that and nowhere else. It is set for
// speed and may lose its data with the machine. On Linux it ends with the process
// that started it, however that one ends.
package pgproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// A Server is one server process and the directory that it lives in.
type Server struct {
	dir   string
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{} // closed when the process is gone and has been waited for
}

// Start makes a cluster, runs a server on it and returns once that takes
// connections. PostgreSQL refuses to run as root: for a caller who is root it
// runs as the user postgres, whom its packages make. When ctx ends first, the
// server is ended and the error wraps the context's. The caller closes the
// server.
func Start(ctx context.Context) (*Server, error) {
	programs, err := Find()
	if err != nil {
		return nil, err
	}
	// Straight into the system's directory: the path of a socket is short.
	dir, err := os.MkdirTemp("", "pgproc-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, log: newTail(), ended: make(chan struct{})}
	if err := s.start(ctx, programs); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// start leaves nothing running if it returns an error.
func (s *Server) start(ctx context.Context, programs string) error {
	attributes, err := unprivileged(s.dir)
	if err != nil {
		return err
	}
	program := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(programs, name), args...)
		cmd.Dir = s.dir // the caller's may be closed to the other user
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
		cmd.SysProcAttr = attributes
		return cmd
	}
	data := filepath.Join(s.dir, "data")

	out, err := program(ctx, "initdb", "-D", data, "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("initdb: %w\n%s", err, out), ctx.Err())
	}

	s.cmd = program(context.WithoutCancel(ctx), "postgres", "-D", data, "-k", s.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.run(); err != nil {
		return err
	}
	select {
	case <-s.log.ready:
		return nil
	case <-s.ended:
		return fmt.Errorf("it ended: %v\n%s", s.cmd.ProcessState, s.log)
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%w\n%s", ctx.Err(), s.log), s.end())
	}
}

// run starts the process and leaves it to a goroutine that ends with it, for
// which end waits.
func (s *Server) run() error {
	started := make(chan error, 1)
	go func() {
		// The signal that ends the server with its parent is sent when the thread
		// that started it ends, so that thread must outlive the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.cmd.Wait() // How it ended does not matter.
			close(s.ended)
		}
	}()
	return <-started
}

// end tells the server to end all sessions at once, and waits until it is gone.
func (s *Server) end() error {
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	return nil
}

// DSN names a database of the server in the form of libpq, which pgx and lib/pq
// understand. The database postgres is there from the beginning.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("host=%s port=5432 user=postgres dbname=%s", s.dir, database)
}

// Log is the end of what the server has written about itself.
func (s *Server) Log() string { return s.log.String() }

// Close ends the server and all sessions on it, and removes its directory.
func (s *Server) Close() error {
	return errors.Join(s.end(), os.RemoveAll(s.dir))
}
