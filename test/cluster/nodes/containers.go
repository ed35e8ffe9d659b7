package nodes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	docker "github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Label is on every container and network that tests have made, so that what a
// run leaves that was killed can be found and removed.
const Label = "quorumlock.test"

// Engine is a Docker engine, with a network for the containers of a run.
type Engine struct {
	*testcontainers.DockerClient
	network string // its name
}

// NewEngine finds the engine and makes the network. The caller closes it.
func NewEngine(ctx context.Context) (*Engine, error) {
	// There may be no registry to have the helper from that removes what is left
	// over, and a guess where ports are published goes wrong in a container.
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	log.SetDefault(silent{})
	client, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, err
	}
	// The engine would make a second network of a name that one has already.
	e := &Engine{client, "quorumlock-test-" + strings.ToLower(rand.Text()[:8])}
	_, err = client.NetworkCreate(ctx, e.network, docker.NetworkCreateOptions{Labels: map[string]string{Label: ""}})
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return e, nil
}

// Close removes the network. All that were on it must be gone; an endpoint that the
// engine still counts for one that is gone is removed with it.
func (e *Engine) Close(ctx context.Context) error {
	var left []error
	for range 50 {
		_, err := e.NetworkRemove(ctx, e.network, docker.NetworkRemoveOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
		seen, gone := e.NetworkInspect(ctx, e.network, docker.NetworkInspectOptions{})
		if gone != nil {
			return errors.Join(err, gone)
		}
		left = []error{err}
		for id, endpoint := range seen.Network.Containers {
			if _, err := e.ContainerInspect(ctx, id, docker.ContainerInspectOptions{}); err == nil {
				left = append(left, fmt.Errorf("container %s is still there", endpoint.Name))
				continue
			}
			_, err := e.NetworkDisconnect(ctx, e.network, docker.NetworkDisconnectOptions{Container: endpoint.Name, Force: true})
			left = append(left, err)
		}
		time.Sleep(100 * time.Millisecond) // what is being removed takes a moment
	}
	return errors.Join(left...)
}

// Containers are servers in containers of an image, which must be there.
type Containers struct {
	Engine *Engine
	Image  string
}

// Start implements Backend.
func (c Containers) Start(ctx context.Context, durable bool) (Server, error) {
	port, err := port()
	if err != nil {
		return nil, err
	}
	s := &made{
		contained: contained{engine: c.Engine, network: c.Engine.network, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))},
		image:     c.Image, durable: durable, port: port,
	}
	return s, s.create(ctx)
}

// made is a container that was made by Containers.
type made struct {
	contained
	image   string
	durable bool
	port    int
}

func (m *made) create(ctx context.Context) error {
	const inside = "6379/tcp"
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        m.image,
			Cmd:          append([]string{"redis-server", "--dir", "/data", "--protected-mode", "no"}, arguments(m.durable)...),
			ExposedPorts: []string{inside},
			Networks:     []string{m.network},
			Labels:       map[string]string{Label: ""},
			// A volume, since the layers of an image may be slow to sync.
			ConfigModifier: func(c *container.Config) { c.Volumes = map[string]struct{}{"/data": {}} },
			HostConfigModifier: func(h *container.HostConfig) {
				h.PortBindings = network.PortMap{network.MustParsePort(inside): {
					{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(m.port)},
				}}
			},
		},
		Started: true,
	})
	if c != nil {
		m.id = c.GetContainerID()
	}
	if err == nil {
		err = answering(ctx, m.addr)
	}
	if err != nil {
		return fmt.Errorf("container of %s: %w", m.image, err)
	}
	return nil
}

// Restart implements Server. What a container has written goes with it.
func (m *made) Restart(ctx context.Context, data redisproc.Data) error {
	if data == redisproc.Keep || !m.durable {
		return m.again(ctx)
	}
	if err := m.Close(ctx); err != nil {
		return err
	}
	return m.create(ctx)
}

// silent is for testcontainers, which otherwise tells every step.
type silent struct{}

func (silent) Printf(string, ...any) {}
