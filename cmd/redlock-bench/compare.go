package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// compare makes a comparison and returns the exit status.
func compare(s compareSettings, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go heed(signals, cancel, os.Exit, stderr)

	text, object, page, err := s.outputs(stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "redlock-bench:", err)
		return exitFailed
	}
	c, err := contest{compareSettings: s, say: stderr, measure: inChild}.report(ctx)
	if err == nil {
		c.text(text)
		err = errors.Join(c.object(object), c.page(page), c.document(s.write))
	}
	if err != nil {
		fmt.Fprintln(stderr, "redlock-bench:", err)
		return exitFailed
	}
	return c.status()
}

// outputs are where a comparison goes; without an object or a page they are nil.
// What cannot be written is refused before anything is measured.
func (s compareSettings) outputs(stdout, stderr io.Writer) (text io.Writer, object io.WriteCloser, page *os.File, err error) {
	if err = hasPlace(s.write); err != nil {
		return nil, nil, nil, err
	}
	if s.html != "" {
		if page, err = create("html", s.html); err != nil {
			return nil, nil, nil, err
		}
	}
	text, object, err = outputs(s.json, stdout, stderr)
	return text, object, page, err
}

// status is the exit status of a comparison. How fast anything was has no part in
// it.
func (c comparison) status() int {
	switch {
	case c.overlaps() > 0:
		return exitFailed
	case c.Interrupted:
		return exitInterrupted
	case !slices.ContainsFunc(c.Taken, func(t taken) bool { return t.Figures != nil }):
		return exitFailed
	}
	return exitClean
}

// object writes a comparison as JSON, if that is wanted.
func (c comparison) object(to io.WriteCloser) error {
	if to == nil {
		return nil
	}
	return errors.Join(writeJSON(to, c), to.Close())
}

// page writes a comparison as HTML, if that is wanted.
func (c comparison) page(to *os.File) error {
	if to == nil {
		return nil
	}
	return errors.Join(c.html(to), to.Close())
}

// report makes the comparison.
func (c contest) report(ctx context.Context) (comparison, error) {
	r := comparison{
		Started: time.Now(), Software: thisSoftware(), Machine: thisMachine(), Rivals: contestants(c.rivals),
		Settings: comparisonSettings{
			Nodes: c.nodes.kind, Count: c.nodes.count, Repetitions: c.reps, LengthS: c.length.Seconds(), Quick: c.quick,
		},
	}
	nodes, _, err := c.raise(ctx)
	if err != nil {
		return r, err
	}
	found := nodes.look(ctx, namespace())
	if err := errors.Join(usable(found), nodes.down()); err != nil {
		return r, err
	}
	r.Server = found[0].server
	r.Taken = c.run(ctx)
	r.Interrupted, r.Took = ctx.Err() != nil, time.Since(r.Started).Seconds()
	r.Scenes = c.score(r.Taken)
	if c.nodes.kind != kindEmbedded { // which show nothing of how fast it is
		r.Aims = c.aims(r.Taken)
	}
	return r, nil
}

// overlaps is how often two held a key at once, in all measurements.
func (c comparison) overlaps() (n int64) {
	for _, t := range c.Taken {
		if t.Figures != nil {
			n += t.Figures.Overlaps
		}
	}
	return n
}
