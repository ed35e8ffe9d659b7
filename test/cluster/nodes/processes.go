package nodes

import (
	"context"
	"errors"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Processes are servers that are processes of this machine.
type Processes struct {
	Clocks bool // each has a wall clock of its own
}

// Start implements Backend.
func (p Processes) Start(ctx context.Context, durable bool) (Server, error) {
	at, err := port()
	if err != nil {
		return nil, err
	}
	s, err := redisproc.Start(ctx, redisproc.Options{Port: at, Args: arguments(durable), SkewedClock: p.Clocks})
	if err != nil {
		return nil, err
	}
	return process{s}, nil
}

type process struct{ *redisproc.Server }

func (p process) Peer() string                     { return p.Addr() }
func (p process) Kill(context.Context) error       { return p.Server.Kill() }
func (p process) Pause(context.Context) error      { return p.Server.Stop() }
func (p process) Resume(context.Context) error     { return p.Server.Cont() }
func (p process) Disconnect(context.Context) error { return errors.ErrUnsupported }
func (p process) Connect(context.Context) error    { return errors.ErrUnsupported }
func (p process) Close(context.Context) error      { return p.Server.Close() }
