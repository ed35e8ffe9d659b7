package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/quorum"
)

// report is the outcome of a run. As JSON its field names stay what they are;
// fields may be added. Times are in the unit that the name ends with.
type report struct {
	Started     time.Time      `json:"started"`
	Interrupted bool           `json:"interrupted"`
	Software    software       `json:"software"`
	Machine     machine        `json:"machine"`
	Settings    reportSettings `json:"settings"`
	Nodes       []reportNode   `json:"nodes"`
	Phases      []reportPhase  `json:"phases"`
	Check       reportCheck    `json:"check"`
}

// reportSettings are the flags of the run.
type reportSettings struct {
	Nodes   string  `json:"nodes"` // embedded, spawn or remote
	Workers int     `json:"workers"`
	PhaseS  float64 `json:"phase_s,omitempty"` // unless cycles were given
	Cycles  int     `json:"cycles,omitempty"`
	TTLMS   float64 `json:"ttl_ms"`
	Keys    int     `json:"keys"`
	HoldMS  float64 `json:"hold_ms"`
	Seed    uint64  `json:"seed"`
	Fenced  bool    `json:"fenced"`
	Durable bool    `json:"durable"` // the nodes forget nothing during the run
}

// reportNode is a node as it was found at the start.
type reportNode struct {
	URL    string `json:"url"` // without password
	Server string `json:"server,omitempty"`
	Error  string `json:"error,omitempty"`
}

// reportPhase is what was done in one phase.
type reportPhase struct {
	Name     string             `json:"name"` // distinct or contended
	Seconds  float64            `json:"seconds"`
	OK       int64              `json:"ok"` // cycles that succeeded
	Rate     float64            `json:"cycles_per_s"`
	Failed   map[string]int64   `json:"failed"` // by failureNames, all of them
	CutShort int64              `json:"cut_short"`
	Took     map[string]latency `json:"latency"`                // by stepNames, of cycles that succeeded
	Errors   map[string]string  `json:"first_errors,omitempty"` // by failureNames
}

// latency is how long a step took, in microseconds, to about 1 %.
type latency struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Max  float64 `json:"max_us"`
}

// reportCheck is the verdict.
type reportCheck struct {
	Clean       bool     `json:"clean"`
	Holds       int      `json:"holds"`
	Keys        int      `json:"keys"`
	Fenced      int      `json:"fenced"`             // holds with a fence, whose order was judged
	Appended    int      `json:"appended,omitempty"` // writes that the guarded store of a drill took
	Overlaps    int      `json:"overlaps"`
	FenceFaults int      `json:"fence_faults"`           // fences that repeat or go back, and leases without
	StoreFaults int      `json:"store_faults,omitempty"` // writes that are missing there, twice, or out of order
	Left        int      `json:"left"`
	Asked       int      `json:"nodes_asked"`         // for what was left
	NotAsked    []string `json:"not_asked,omitempty"` // and why
	Faults      []string `json:"faults,omitempty"`    // in words; only the first of many
	Close       string   `json:"close,omitempty"`     // what closing the locker complained of
}

func summarize(p phase, all *recorder, took time.Duration) reportPhase {
	r := reportPhase{
		Name: p.name, Seconds: took.Seconds(), OK: all.ok.Load(), CutShort: all.cutShort,
		Failed: make(map[string]int64), Took: make(map[string]latency), Errors: make(map[string]string),
	}
	if took > 0 {
		r.Rate = float64(r.OK) / took.Seconds()
	}
	for i, name := range failureNames {
		r.Failed[name] = all.failed[i]
		if err := all.firstError[i]; err != nil {
			r.Errors[name] = err.Error()
		}
	}
	for i, name := range stepNames {
		if step(i) == stepHold && p.hold == 0 {
			continue // nothing was held any longer than it takes to let go
		}
		h := all.took[i]
		us := func(ns int64) float64 { return float64(ns) / 1000 }
		r.Took[name] = latency{
			P50: us(h.ValueAtPercentile(50)), P99: us(h.ValueAtPercentile(99)),
			P999: us(h.ValueAtPercentile(99.9)), Max: us(h.Max()),
		}
	}
	return r
}

// decide is the verdict on what was recorded and what was found on the nodes
// afterwards. If fences were asked for, every lease must have one. A node that
// cannot be asked is named and does not make a run unclean, as long as a majority
// can: losing some is what the lock is for.
func decide(run history.Run, fenced bool, found []survey, closing error) reportCheck {
	keys, notAsked := left(found)
	run.Left = keys
	v := run.Judge()
	c := reportCheck{
		Holds: v.Holds, Keys: v.Keys, Fenced: v.Fenced,
		Appended: v.Appended,
		Overlaps: len(v.Overlaps), FenceFaults: len(v.Misordered), StoreFaults: len(v.Misplaced), Left: len(v.Left),
		Asked: len(found) - len(notAsked),
	}
	for _, s := range notAsked {
		c.NotAsked = append(c.NotAsked, s.url+": "+s.err.Error())
	}
	if closing != nil {
		c.Close = closing.Error()
	}
	c.Faults = v.Faults()
	if without := v.Holds - v.Fenced - len(v.Broken); fenced && without > 0 {
		c.FenceFaults += without
		c.Faults = append(c.Faults, fmt.Sprintf("%d leases came without a fence", without))
	}
	enough := c.Asked >= quorum.Majority(len(found))
	if !enough {
		c.Faults = append(c.Faults, "too few nodes could be asked what was left on them")
	}
	c.Clean = v.Clean() && c.FenceFaults == 0 && enough
	return c
}

// writeJSON writes an object, indented.
func writeJSON(w io.Writer, object any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(object)
}
