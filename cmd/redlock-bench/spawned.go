package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// spawned is a node that this program runs and may harm.
type spawned struct {
	server *redisproc.Server
}

// onDisk has a server write every grant to disk before it answers it.
var onDisk = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

// spawnPatients starts servers for a drill. durable ones lose nothing when they
// are killed.
func spawnPatients(ctx context.Context, count int, durable bool) (*cluster, []patient, error) {
	c := &cluster{}
	var patients []patient
	var options redisproc.Options
	if durable {
		options.Args = onDisk
	}
	for i := range count {
		s, err := redisproc.Start(ctx, options)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("node %d of %d: %w", i+1, count, err), c.down())
		}
		c.stop = append(c.stop, s.Close)
		c.urls = append(c.urls, "redis://"+s.Addr())
		patients = append(patients, &spawned{server: s})
	}
	return c, patients, nil
}

func (s *spawned) harm(ctx context.Context, a act) error {
	switch a.kind {
	case faultKill:
		return s.server.Kill()
	case faultRestart:
		return errors.Join(s.server.Kill(), s.server.Restart(ctx, redisproc.Keep))
	case faultWipe:
		return s.server.Restart(ctx, redisproc.Wipe)
	case faultStop:
		return s.server.Stop()
	}
	return unable(a.kind)
}

func (s *spawned) heal(ctx context.Context, fault faultKind) error {
	switch fault {
	case faultKill, faultRestart, faultWipe:
		return s.server.Restart(ctx, redisproc.Keep)
	case faultStop:
		return s.server.Cont()
	}
	return unable(fault)
}

// unable is for a fault that parseDrill has excluded.
func unable(kind faultKind) error { return fmt.Errorf("%s cannot be done to this node", kind) }
