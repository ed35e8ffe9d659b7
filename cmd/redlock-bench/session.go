package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// closePatience is how long everything may take to be released at the end.
const closePatience = 15 * time.Second

// session is one run of the bench.
type session struct {
	settings
	text     io.Writer // for the results
	progress progress

	// makeLocker makes what is measured.
	makeLocker func(*cluster, redlock.Config) (locker, error)
}

// run starts the nodes, puts the load on them, and judges what happened. When
// ctx ends it stops early and judges what there is. An error means that there
// is nothing to judge.
func (s session) run(ctx context.Context) (r report, err error) {
	// Made now, so that a long run does not end with a name that is wrong.
	written, err := createHistory(s.history)
	if err != nil {
		return r, err
	}
	defer written.Close()
	c, err := s.nodes.up(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.down()) }()
	c.durable = c.durable || s.durable

	prefix := namespace()
	found := c.look(ctx, prefix)
	if ctx.Err() != nil {
		return r, fmt.Errorf("interrupted before it began: %w", ctx.Err())
	}
	if err := usable(found); err != nil {
		return r, err
	}
	r = s.report(found)
	r.Settings.Durable = c.durable
	r.head(s.text)

	cfg := c.config(s.ttl, max(s.ttl, 30*time.Second), prefix)
	cfg.Fenced = s.fenced
	l, err := s.makeLocker(c, cfg)
	if err != nil {
		return r, err
	}
	holds := s.load(ctx, l, &r)
	r.Interrupted = ctx.Err() != nil

	// An interrupt ends the load, not the cleaning up after it.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	closing := l.Close(after)
	found = c.look(context.WithoutCancel(ctx), prefix)
	r.Check = decide(history.Run{Holds: holds}, s.fenced, found, closing)
	c.forget(after, found)
	r.Check.foot(s.text, len(r.Nodes), r.Interrupted)
	return r, writeHistory(written, holds)
}

// load does the phases and returns all that was held.
func (s session) load(ctx context.Context, l locker, r *report) (holds []history.Hold) {
	warmUp(ctx, l)
	epoch := time.Now()
	for _, p := range s.phases() {
		if ctx.Err() != nil {
			break
		}
		recs := make([]*recorder, p.workers)
		for i := range recs {
			recs[i] = newRecorder()
		}
		done, followed := make(chan struct{}), make(chan struct{})
		go func() {
			s.progress.follow(p, recs, done)
			close(followed)
		}()
		all, took := p.run(ctx, []locker{l}, epoch, recs)
		close(done)
		<-followed
		holds = append(holds, all.holds...)
		r.Phases = append(r.Phases, summarize(p, all, took))
		r.body(s.text, r.Phases[len(r.Phases)-1])
	}
	return holds
}

// warmUp does one cycle, so that connections are there before anything is
// measured. If it fails, so will the first that counts.
func warmUp(ctx context.Context, l locker) {
	ctx, cancel := context.WithTimeout(ctx, introPatience)
	defer cancel()
	if lease, err := l.Acquire(ctx, "warm-up"); err == nil {
		lease.Release(ctx)
	}
}

// namespace is what all keys of a run begin with. No other run has the same.
// On a node in cluster mode the braces keep them in one slot.
func namespace() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails
	return "redlock-bench:{" + hex.EncodeToString(b) + "}:"
}

// usable says why a run cannot be made on these nodes.
func usable(found []survey) error {
	keys, notAsked := left(found)
	if len(keys) > 0 {
		return fmt.Errorf("%s has key %q, which this run did not make: it is not touched, and nothing was run", keys[0].Node, keys[0].Key)
	}
	if need := quorum.Majority(len(found)); len(found)-len(notAsked) < need {
		errs := []error{fmt.Errorf("%d of %d nodes answer, and %d are needed", len(found)-len(notAsked), len(found), need)}
		for _, s := range notAsked {
			errs = append(errs, fmt.Errorf("%s: %w", s.url, s.err))
		}
		return errors.Join(errs...)
	}
	return nil
}

// report begins the report of a run on the nodes that were found.
func (s session) report(found []survey) report {
	r := report{
		Started: time.Now(), Software: thisSoftware(), Machine: thisMachine(),
		Settings: reportSettings{
			Nodes: s.nodes.kind, Workers: s.workers, Cycles: s.cycles, TTLMS: millis(s.ttl),
			Keys: s.keys, HoldMS: millis(s.hold), Seed: s.seed, Fenced: s.fenced,
		},
	}
	if s.cycles == 0 {
		r.Settings.PhaseS = s.length.Seconds()
	}
	r.Nodes = reportNodes(found)
	return r
}

// reportNodes are nodes as they were found.
func reportNodes(found []survey) (nodes []reportNode) {
	for _, f := range found {
		n := reportNode{URL: f.url, Server: f.server}
		if f.err != nil {
			n.Error = f.err.Error()
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
