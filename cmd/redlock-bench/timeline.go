package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// timeline tells people what happens while it happens, a line for each second and
// one for each act, and keeps it for the report.
type timeline struct {
	out   io.Writer
	pulse *pulse
	now   func() time.Duration // since the load began
	tick  <-chan time.Time     // when a line is due
	over  <-chan struct{}      // closed when the load is over

	beats []beat
	acts  []played
	fault []faultKind // of each node
	last  time.Duration
}

// follow tells of acts and seconds until there are no more acts to come.
func (t *timeline) follow(acts <-chan played) {
	fmt.Fprintf(t.out, "\n%8s %9s %10s %10s  %s\n", "time", "grants/s", "p99 own", "p99 shared", "failed; nodes at fault")
	for {
		select {
		case <-t.tick:
			t.beat()
		case <-t.over:
			t.tick, t.over = nil, nil
			if t.now()-t.last > 100*time.Millisecond {
				t.beat()
			}
		case a, ok := <-acts:
			if !ok {
				return
			}
			t.act(a)
		}
	}
}

func (t *timeline) beat() {
	now := t.now()
	b := t.pulse.take(t.last, now)
	t.last = now
	for n, f := range t.fault {
		if f != "" {
			b.AtFault = append(b.AtFault, fmt.Sprint("n", n+1))
		}
	}
	t.beats = append(t.beats, b)
	fmt.Fprintln(t.out, b.line())
}

func (t *timeline) act(a played) {
	for _, n := range a.nodes {
		t.fault[n] = ""
		if a.kind.lasts() {
			t.fault[n] = a.kind
		}
	}
	if a.seen > 0 {
		t.acts = append(t.acts, a)
	}
	fmt.Fprintln(t.out, a.line())
}

// line is a second in one line.
func (b beat) line() string {
	own, shared := "-", "-"
	if b.P99Own > 0 {
		own = us(b.P99Own)
	}
	if b.P99Shared > 0 {
		shared = us(b.P99Shared)
	}
	var notes []string
	if len(b.Failed) > 0 {
		notes = append(notes, failuresText(b.Failed))
	}
	if len(b.AtFault) > 0 {
		notes = append(notes, strings.Join(b.AtFault, ", ")+" at fault")
	}
	line := fmt.Sprintf("%7.1fs %9.0f %10s %10s  %s", b.UntilS, b.Rate, own, shared, strings.Join(notes, "; "))
	return strings.TrimRight(line, " ")
}

// line is an act in one line, when it has begun or when it was seen to have
// happened.
func (p played) line() string {
	switch {
	case p.seen == 0:
		return fmt.Sprintf("%7.1fs * %v", p.began.Seconds(), p.act)
	case p.err != nil:
		return fmt.Sprintf("%7.1fs   %v DID NOT HAPPEN: %s", p.seen.Seconds(), p.act, oneLine(p.err))
	case p.kind.lasts():
		return fmt.Sprintf("%7.1fs   %v: %s", p.seen.Seconds(), p.act, p.proof)
	}
	return fmt.Sprintf("%7.1fs   %v: %s, %v later", p.seen.Seconds(), p.act, p.proof, (p.done - p.began).Round(time.Millisecond))
}

// oneLine is what an error of several lines says.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
