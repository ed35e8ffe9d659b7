package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/redlock"
)

// keptTTLs is for how many TTLs a lease is held that is renewed.
const keptTTLs = 3

// readyPatience is how long the first locks may take to come, beyond a quarantine.
const readyPatience = 20 * time.Second

// drill is one drill: load on nodes while a plan of faults is played.
type drill struct {
	drillSettings
	text io.Writer

	// up makes the nodes, makeLocker what is measured on them.
	up         func(context.Context, drillSettings) (*cluster, []patient, error)
	makeLocker func(*cluster, redlock.Config) (locker, error)
}

// runDrill makes a drill and returns the exit status.
func runDrill(s drillSettings, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	return perform(s.json, stdout, stderr, signals, func(ctx context.Context, text io.Writer) (drillReport, error) {
		return drill{drillSettings: s, text: text, up: drillNodes, makeLocker: newQuorumLocker}.run(ctx)
	}, func(r drillReport, err error, interrupted bool) int { return status(r.Check, err, interrupted) })
}

// drillNodes are the nodes of a drill, as its settings say.
func drillNodes(ctx context.Context, s drillSettings) (*cluster, []patient, error) {
	var c *cluster
	var patients []patient
	var err error
	if s.nodes.kind == kindCompose {
		c, patients, err = composePatients(ctx, s.nodes.project)
	} else {
		c, patients, err = spawnPatients(ctx, s.nodes.count, s.durable)
	}
	if err != nil {
		return nil, nil, err
	}
	c.durable = s.durable
	if s.behindProxies() {
		if err := link(c, patients); err != nil {
			return nil, nil, errors.Join(err, c.down())
		}
	}
	return c, patients, nil
}

// behindProxies says whether something happens on the way to nodes, which needs
// something on the way.
func (s drillSettings) behindProxies() bool {
	return slices.ContainsFunc(s.plan, func(a act) bool { return a.kind.onTheWay() })
}

// run does the drill and judges it. When ctx ends it stops early, heals all nodes,
// and judges what there is. An error means that there is nothing to judge.
func (d drill) run(ctx context.Context) (r drillReport, err error) {
	c, patients, err := d.up(ctx, d.drillSettings)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.down()) }()

	prefix := namespace()
	found := c.look(ctx, prefix)
	if ctx.Err() != nil {
		return r, fmt.Errorf("interrupted before it began: %w", ctx.Err())
	}
	if err := usable(found); err != nil {
		return r, err
	}
	r = d.report(found)
	r.head(d.text)

	cfg := c.config(d.ttl, d.ttl, prefix)
	cfg.Fenced, cfg.NodeTimeout = d.fenced, d.nodeTimeout
	lockers, closeAll, err := d.dial(c, cfg)
	if err != nil {
		return r, err
	}
	if err := d.ready(ctx, lockers); err != nil {
		return r, errors.Join(err, closeAll(ctx))
	}
	w := witness{urls: c.urls, marker: prefix + "marker"}
	l := d.load(ctx, lockers, newPlayer(d.plan, patients, w))
	r.Interrupted = ctx.Err() != nil

	// An interrupt ends the load, not the cleaning up after it.
	closing := closeAll(ctx)
	found = c.look(context.WithoutCancel(ctx), prefix)
	r.Check = decide(l.run, d.fenced, found, closing)
	r.take(l)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	c.forget(after, found)
	r.foot(d.text)
	return r, nil
}

// dial makes several lockers, as several processes would have them, and what closes them.
func (d drill) dial(c *cluster, cfg redlock.Config) (all []locker, closeAll func(context.Context) error, err error) {
	closeAll = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		errs := make([]error, len(all))
		var group sync.WaitGroup
		for i, l := range all {
			group.Go(func() { errs[i] = l.Close(ctx) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	for range d.lockers {
		l, err := d.makeLocker(c, cfg)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(context.Background()))
		}
		all = append(all, l)
	}
	return all, closeAll, nil
}

// ready waits until every locker can get a lock, which on servers that have just
// started is when they are out of quarantine.
func (d drill) ready(ctx context.Context, lockers []locker) error {
	if need := d.quarantine(); need > 0 {
		fmt.Fprintf(d.text, "\nwaiting until nodes vote: one that has just started does so %v later\n", need)
	}
	in, cancel := context.WithTimeout(ctx, d.quarantine()+readyPatience)
	defer cancel()
	errs := make([]error, len(lockers))
	var group sync.WaitGroup
	for i, l := range lockers {
		group.Go(func() {
			lease, err := l.Acquire(in, fmt.Sprint("warm-up:", i))
			if err == nil {
				lease.Release(in) // or it runs out
			}
			errs[i] = err
		})
	}
	group.Wait()
	switch err := errors.Join(errs...); {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted before it began: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("no lock can be had before anything is at fault: %w", err)
	}
	return nil
}

// loaded is what came of the load.
type loaded struct {
	run    history.Run
	end    time.Duration // when the load was over
	phases []reportPhase
	beats  []beat
	acts   []played
	steps  int // how many of the plan they are; what is healed at the end comes on top
}

// load puts the load on while the plan is played, and heals all nodes afterwards.
func (d drill) load(ctx context.Context, lockers []locker, p *player) (l loaded) {
	epoch := time.Now()
	now := func() time.Duration { return time.Since(epoch) }
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	over, acts, told := make(chan struct{}), make(chan played), make(chan struct{})
	t := &timeline{
		out: d.text, pulse: newPulse(), now: now, tick: ticker.C, over: over, fault: make([]faultKind, len(p.patients)),
	}
	go func() {
		t.follow(acts)
		close(told)
	}()
	tell := func(a played) { acts <- a }

	playing, stop := context.WithCancel(ctx)
	var playback, work sync.WaitGroup
	playback.Go(func() { l.steps = p.play(playing, epoch, tell) })
	phases := d.phases()
	all, took := make([]*recorder, len(phases)), make([]time.Duration, len(phases))
	for i, ph := range phases {
		recs := make([]*recorder, ph.workers)
		for j := range recs {
			recs[j] = newRecorder()
			recs[j].live = t.pulse
		}
		work.Go(func() { all[i], took[i] = ph.run(ctx, lockers, epoch, recs) })
	}
	work.Wait()
	l.end = now()
	close(over)
	stop()
	playback.Wait()
	p.healAll(ctx, epoch, tell)
	close(acts)
	<-told

	l.beats, l.acts = t.beats, t.acts
	for i, ph := range phases {
		l.run.Holds = append(l.run.Holds, all[i].holds...)
		l.run.Appends = append(l.run.Appends, all[i].appends...)
		l.phases = append(l.phases, summarize(ph, all[i], took[i]))
	}
	if store := phases[0].store; store != nil {
		l.run.Log = store.Log()
	}
	return l
}

// phases are what the workers of a drill do, all at the same time: the two of a
// run, and one worker for each locker who holds a lease for long and renews it.
func (d drill) phases() []phase {
	s := settings{workers: d.workers, length: d.length, ttl: d.ttl, keys: d.keys, hold: d.hold, seed: d.seed}
	all := s.phases()
	own, shared := &all[0], &all[1]
	own.workers, own.hold = d.workers/2, d.hold
	shared.workers = d.workers - own.workers
	kept := phase{
		name: "kept", workers: d.lockers, length: d.length, seed: d.seed + 2,
		keys: func(worker int) []string { return numbered(fmt.Sprintf("kept:%d:", worker), 1) },
		wait: d.ttl, hold: keptTTLs * d.ttl, kept: true,
	}
	all = append(all, kept)
	first, store := 0, (*history.Store)(nil)
	if d.fenced {
		store = new(history.Store)
	}
	for i := range all {
		all[i].first, all[i].store = first, store
		first += all[i].workers
	}
	return all
}
