package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// errPortTaken says that the child ended because its port was in use.
var errPortTaken = errors.New("port in use")

// child is one process of a server. Its ended channel is closed when the
// process is gone and has been waited for.
type child struct {
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{}
}

// spawn starts a process, with env besides our own environment, and leaves it to a
// goroutine that ends with it; kill waits for both.
func spawn(binary string, args, env []string) (*child, error) {
	c := &child{cmd: exec.Command(binary, args...), log: newTail(), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.SysProcAttr = attributes()
	// A child that forked to write a snapshot leaves a grandchild with the pipe.
	c.cmd.WaitDelay = time.Second

	started := make(chan error, 1)
	go func() {
		// The signal that ends the child with its parent is sent when the thread
		// that started it ends, so that thread must outlive the child. Whatever
		// goroutine the thread was lent to next could end it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.cmd.Wait() // How it ended does not matter: kill is one way of many.
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// ready waits until the child has said that it listens and answers PING. That
// it said so proves that the answer is its own and not that of a stranger who
// had the port.
func (c *child) ready(ctx context.Context, addr string) error {
	select {
	case <-c.log.listening:
		return ping(ctx, addr)
	case <-c.ended:
		log := c.log.String()
		if strings.Contains(log, "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("it ended: %v\n%s", c.cmd.ProcessState, log)
	case <-ctx.Done():
		return fmt.Errorf("%w\n%s", ctx.Err(), c.log)
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (c *child) kill() error {
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.ended
	return nil
}
