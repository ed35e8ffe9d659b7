package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// contest is a comparison under way.
type contest struct {
	compareSettings
	say io.Writer // how far it is

	// measure takes one measurement.
	measure func(ctx context.Context, t trial.Task, do trial.Do) (trial.Figures, error)
}

// taken is a measurement. As JSON its field names stay what they are; fields may
// be added.
type taken struct {
	Scene      string         `json:"scene"`
	Who        string         `json:"who"`
	Repetition int            `json:"repetition"` // from 1
	Figures    *trial.Figures `json:"figures,omitempty"`
	Error      string         `json:"error,omitempty"` // why there are none
}

// run takes all measurements, in each repetition all scenes and in each scene all
// who are in it, in another order each time. When ctx ends it stops with what
// there is.
func (c contest) run(ctx context.Context) (all measurements) {
	scenes := c.scenes()
	total := 0
	for _, sc := range scenes {
		total += len(sc.cast) * c.repetitions(sc)
	}
	began := time.Now()
	for rep := 1; rep <= c.reps; rep++ {
		for _, sc := range scenes {
			if rep > c.repetitions(sc) {
				continue
			}
			cast := slices.Clone(sc.cast)
			for i := range cast {
				who := cast[(i+rep-1)%len(cast)]
				fmt.Fprintf(c.say, "%3d of %d, %s: %s, %s", len(all)+1, total, remaining(len(all), total, time.Since(began)), sc.Title, sc.titleOf(who))
				t := taken{Scene: sc.Name, Who: who, Repetition: rep}
				f, err := c.stage(ctx, sc, who)
				if ctx.Err() != nil {
					fmt.Fprintln(c.say)
					return all // the last was cut short by the interrupt
				}
				if err != nil {
					t.Error = err.Error()
					fmt.Fprintf(c.say, ": %s\n", oneLine(err))
				} else {
					t.Figures = &f
					fmt.Fprintf(c.say, ": %s\n", gist(f))
				}
				all = append(all, t)
			}
		}
	}
	return all
}

// repetitions is how often a scene is played. Leases are kept alive for long, and
// once: it is about whether they are renewed in time.
func (c contest) repetitions(sc scene) int {
	if sc.task.Mode == trial.Alive {
		return 1
	}
	return c.reps
}

// remaining is how long it will take from here, in words.
func remaining(done, total int, took time.Duration) string {
	if done == 0 {
		return "beginning"
	}
	left := took / time.Duration(done) * time.Duration(total-done)
	return fmt.Sprintf("about %v left", left.Round(time.Second))
}

// gist is the one figure of a measurement that people look for first.
func gist(f trial.Figures) string {
	switch {
	case f.Contended != nil:
		return fmt.Sprintf("%.0f handovers/s, Jain %.2f", f.Contended.PerSecond, f.Contended.Jain)
	case f.Fault != nil:
		return fmt.Sprintf("%.0f cycles/s, %.0f in the fault", f.Fault.Healthy.Rate, f.Fault.Faulty.Rate)
	case f.Alive != nil:
		return fmt.Sprintf("%.0f renewals/s, %d lost", f.Rate, f.Alive.Lost)
	}
	return fmt.Sprintf("%.0f cycles/s", f.Rate)
}

// stage sets a scene up, with servers that have just been started if they are
// ours, and measures one in it.
func (c contest) stage(ctx context.Context, sc scene, who string) (f trial.Figures, err error) {
	nodes, patients, err := c.raise(ctx)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, nodes.down()) }()
	t := sc.task
	t.Rival, t.Prefix, t.Fresh = who, namespace(), nodes.durable
	if t.Mode == trial.Limit {
		t.Rival, t.Scheme = "", who
	}
	t.LeadMS, t.Helper = millis(nodes.lead), os.Getpid()
	for _, p := range patients {
		t.PIDs = append(t.PIDs, p.(*spawned).server.PID())
	}
	t.URLs = nodes.urls
	if sc.single {
		t.URLs, t.PIDs = t.URLs[:1], t.PIDs[:min(1, len(t.PIDs))]
	}
	if sc.rtt > 0 {
		if t.URLs, err = delay(nodes, sc.rtt); err != nil {
			return f, err
		}
	}
	if c.nodes.kind == kindRemote {
		defer func() {
			after := context.WithoutCancel(ctx)
			nodes.forget(after, nodes.look(after, t.Prefix))
		}()
	}
	return c.measure(ctx, t, func(act string, on []int) error { return harm(ctx, patients, act, on) })
}

// raise starts nodes, or takes those that were given.
func (c contest) raise(ctx context.Context) (*cluster, []patient, error) {
	if c.nodes.kind == kindSpawn {
		nodes, patients, err := spawnPatients(ctx, c.nodes.count, false)
		if err == nil {
			nodes.durable = true // see nodeSet.up
		}
		return nodes, patients, err
	}
	nodes, err := c.nodes.up(ctx)
	if err == nil {
		nodes.durable = nodes.durable || c.durable
	}
	return nodes, nil, err
}

// harm does to nodes what a child asks for.
func harm(ctx context.Context, patients []patient, what string, nodes []int) error {
	if len(patients) == 0 {
		return errors.New("these nodes are not ours to harm")
	}
	return each(nodes, func(n int) error {
		switch what {
		case trial.Kill:
			return patients[n].harm(ctx, act{kind: faultKill})
		case trial.Stop:
			return patients[n].harm(ctx, act{kind: faultStop})
		case trial.Continue:
			return patients[n].heal(ctx, faultStop)
		}
		return fmt.Errorf("%q cannot be done to nodes", what)
	})
}

// delay puts relays before nodes that answer so much later, and returns the URLs
// that lead through them. They end with the nodes.
func delay(nodes *cluster, by time.Duration) (urls []string, err error) {
	for _, nodeURL := range nodes.urls {
		u, err := url.Parse(nodeURL)
		if err != nil {
			return nil, err
		}
		p, err := redisproc.NewProxy(u.Host)
		if err != nil {
			return nil, err
		}
		p.Lag(by)
		nodes.stop = append(nodes.stop, func() error { p.Close(); return nil })
		urls = append(urls, "redis://"+p.Addr())
	}
	return urls, nil
}
