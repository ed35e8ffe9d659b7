package trial

import (
	"context"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/pump"
)

// runLimit measures what the machine can do for a lock's commands.
func runLimit(ctx context.Context, t Task) (Figures, error) {
	scheme, err := pump.Named(t.Scheme)
	if err != nil {
		return Figures{}, err
	}
	all, err := connect(t.URLs)
	if err != nil {
		return Figures{}, err
	}
	defer all.close()
	p, err := pump.Open(pump.Setup{URLs: t.URLs, Prefix: t.Prefix, Scheme: scheme, Threads: t.Workers, Flight: t.Flight})
	if err != nil {
		return Figures{}, err
	}
	defer p.Close()
	m := meter{servers: all, pids: t.PIDs, helper: t.Helper}
	p.Start()
	wait(ctx, t.WarmUp)
	from, before := m.first(ctx), p.Cycles()
	wait(ctx, t.Length)
	to, cycles := m.last(ctx), p.Cycles()-before
	if err := p.Stop(); err != nil {
		return Figures{}, err
	}
	took := to.at.Sub(from.at)
	return Figures{
		Seconds: took.Seconds(), Cycles: cycles, Rate: float64(cycles) / took.Seconds(),
		Cost: cost(from, to, cycles), Others: others(from, to), Left: all.left(ctx, t.Prefix),
	}, ctx.Err()
}
