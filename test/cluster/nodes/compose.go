package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	docker "github.com/moby/moby/client"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Compose is the cluster of docker-compose.cluster.yml, as it stands there. Its five
// masters are durable, and stay from one user to the next.
type Compose struct {
	engine  *Engine
	file    string
	image   string
	project string
	free    chan *service
}

// NewCompose brings the cluster up. The caller closes it, also after an error.
func NewCompose(ctx context.Context, e *Engine, file, image string) (*Compose, error) {
	c := &Compose{engine: e, file: file, image: image, project: e.network, free: make(chan *service, 5)}
	if _, err := c.run(ctx, "up", "-d"); err != nil {
		return c, err
	}
	for i := range cap(c.free) {
		name := fmt.Sprint("node", i+1)
		id, err := c.run(ctx, "ps", "-q", name)
		if err != nil {
			return c, err
		}
		c.free <- &service{
			contained: contained{engine: e, id: strings.TrimSpace(id), network: c.project + "_default", addr: fmt.Sprint("127.0.0.1:", 7101+i)},
			name:      name, of: c,
		}
	}
	return c, nil
}

// Close takes the cluster down.
func (c *Compose) Close(ctx context.Context) error {
	_, err := c.run(ctx, "down", "-v", "--timeout", "1")
	return err
}

// run runs Compose, 1 or 2, whichever there is, and returns what it prints.
func (c *Compose) run(ctx context.Context, args ...string) (string, error) {
	command := []string{"docker-compose"}
	if _, err := exec.LookPath(command[0]); err != nil {
		command = []string{"docker", "compose"}
	}
	command = append(append(command, "-p", c.project, "-f", c.file), args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "QUORUMLOCK_IMAGE="+c.image)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, complaints.String())
	}
	return string(out), nil
}

// Start implements Backend: it lends a master, whatever has been done to it. When
// all are lent, it waits.
func (c *Compose) Start(ctx context.Context, durable bool) (Server, error) {
	if !durable {
		return nil, errors.New("the masters of docker-compose.cluster.yml are durable")
	}
	select {
	case s := <-c.free:
		return s, s.repair(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// service is a master of the cluster.
type service struct {
	contained
	name string
	of   *Compose
}

// repair starts a master that a failed test has left halted or down.
func (s *service) repair(ctx context.Context) error {
	seen, err := s.engine.ContainerInspect(ctx, s.id, docker.ContainerInspectOptions{})
	switch state := seen.Container.State; {
	case err != nil:
		return err
	case state.Paused:
		err = s.Resume(ctx)
	case !state.Running:
		err = s.again(ctx)
	}
	if err != nil {
		return err
	}
	if err := answering(ctx, s.addr); err != nil {
		return err
	}
	// As arguments has it.
	admin := Client(s.addr)
	defer admin.Close()
	return admin.ConfigSet(ctx, "tcp-keepalive", "1").Err()
}

func (s *service) Peer() string { return s.name + ":6379" }

// Restart implements Server; the data are kept.
func (s *service) Restart(ctx context.Context, data redisproc.Data) error {
	if data != redisproc.Keep {
		return errors.ErrUnsupported
	}
	return s.again(ctx)
}

// Close gives it back.
func (s *service) Close(context.Context) error {
	s.of.free <- s
	return nil
}
