package nodes

import (
	"context"
	"strings"

	"github.com/moby/moby/api/types/network"
	docker "github.com/moby/moby/client"
)

// contained is a server in a container, whoever has made it.
type contained struct {
	engine  *Engine
	id      string
	network string
	addr    string
}

func (c *contained) Addr() string { return c.addr }

// Peer goes by the name that the network gives every container.
func (c *contained) Peer() string { return c.id[:12] + ":6379" }

func (c *contained) Kill(ctx context.Context) error {
	_, err := c.engine.ContainerKill(ctx, c.id, docker.ContainerKillOptions{Signal: "KILL"})
	if err != nil {
		return err
	}
	wait := c.engine.ContainerWait(ctx, c.id, docker.ContainerWaitOptions{})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return err
	}
}

// again starts the container again with what it has written.
func (c *contained) again(ctx context.Context) error {
	seen, err := c.engine.ContainerInspect(ctx, c.id, docker.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	if seen.Container.State.Running {
		if err := c.Kill(ctx); err != nil {
			return err
		}
	}
	if _, err := c.engine.ContainerStart(ctx, c.id, docker.ContainerStartOptions{}); err != nil {
		return err
	}
	return answering(ctx, c.addr)
}

// Pause asks again where a busy machine was too slow: with the first version of
// control groups the engine tries for a while only to catch all threads at rest.
func (c *contained) Pause(ctx context.Context) error {
	for {
		_, err := c.engine.ContainerPause(ctx, c.id, docker.ContainerPauseOptions{})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
}

func (c *contained) Resume(ctx context.Context) error {
	_, err := c.engine.ContainerUnpause(ctx, c.id, docker.ContainerUnpauseOptions{})
	return err
}

func (c *contained) Disconnect(ctx context.Context) error {
	_, err := c.engine.NetworkDisconnect(ctx, c.network, docker.NetworkDisconnectOptions{Container: c.id})
	return err
}

func (c *contained) Connect(ctx context.Context) error {
	_, err := c.engine.NetworkConnect(ctx, c.network, docker.NetworkConnectOptions{
		Container: c.id, EndpointConfig: &network.EndpointSettings{},
	})
	return err
}

func (c *contained) Close(ctx context.Context) error {
	if c.id == "" {
		return nil
	}
	_, err := c.engine.ContainerRemove(ctx, c.id, docker.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}
