package main

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// drillReport is the outcome of a drill. As JSON its field names stay what they
// are; fields may be added. Times are in the unit that the name ends with.
type drillReport struct {
	Started     time.Time     `json:"started"`
	Interrupted bool          `json:"interrupted"`
	Software    software      `json:"software"`
	Machine     machine       `json:"machine"`
	Settings    drillSet      `json:"settings"`
	Nodes       []reportNode  `json:"nodes"`
	Faults      []reportAct   `json:"faults"` // in the order in which they were played
	Timeline    []beat        `json:"timeline"`
	Phases      []reportPhase `json:"phases"` // at the same time
	Outcome     outcomes      `json:"outcome"`
	Check       reportCheck   `json:"check"`

	plan []act
}

// drillSet are the flags of the drill, and what follows from them.
type drillSet struct {
	Nodes         string  `json:"nodes"` // spawn or compose
	Schedule      string  `json:"schedule"`
	Workers       int     `json:"workers"`
	Lockers       int     `json:"lockers"`
	LengthS       float64 `json:"length_s"`
	TTLMS         float64 `json:"ttl_ms"`
	QuarantineS   float64 `json:"quarantine_s"`              // of a node that has restarted
	NodeTimeoutMS float64 `json:"node_timeout_ms,omitempty"` // unless it is the lock's own
	Keys          int     `json:"keys"`
	HoldMS        float64 `json:"hold_ms"`
	Seed          uint64  `json:"seed"`
	Fenced        bool    `json:"fenced"`
	Durable       bool    `json:"durable"`
	Proxied       bool    `json:"proxied"` // nodes are reached through proxies of the drill
}

// reportAct is something that was done to nodes.
type reportAct struct {
	Kind   string   `json:"kind"`
	Nodes  []string `json:"nodes"` // n1 is the first
	LagMS  float64  `json:"lag_ms,omitempty"`
	BeganS float64  `json:"began_s"` // since the load began
	DoneS  float64  `json:"done_s"`
	Proof  string   `json:"proof,omitempty"` // what showed that it had happened
	Error  string   `json:"error,omitempty"` // why it did not
}

// outcomes are what the faults did to the lock. They are reported and not judged:
// how long something takes is also up to the machine.
type outcomes struct {
	Grants          int        `json:"grants"`
	LongestGapS     float64    `json:"longest_gap_s"` // without a grant
	LongestGapFromS float64    `json:"longest_gap_from_s"`
	Calm            beyond     `json:"calm"`              // while no node was at fault
	Minority        beyond     `json:"minority"`          // while some were, and a quorum was not
	Recoveries      []recovery `json:"recoveries"`        // from a majority being silent
	AimBeyondMS     float64    `json:"aim_beyond_ms"`     // of minority
	AimFirstGrantS  float64    `json:"aim_first_grant_s"` // of recoveries
}

// beyond is how long acquires took beyond their waits for holders.
type beyond struct {
	Grants    int     `json:"grants"`
	LongestMS float64 `json:"longest_ms"`
	AtS       float64 `json:"at_s"` // when that was acquired
}

// recovery is a majority that was silent and came back.
type recovery struct {
	SilentS     float64  `json:"silent_s"`
	BackS       float64  `json:"back_s"`
	FirstGrantS *float64 `json:"first_grant_s"` // after that; null if there was none
}

// aimBeyond is how long an acquire is to take at most beyond its wait for a holder
// while a minority is at fault.
const aimBeyond = 300 * time.Millisecond

// report begins the report of a drill on the nodes that were found.
func (d drill) report(found []survey) drillReport {
	return drillReport{
		Started: time.Now(), Software: thisSoftware(), Machine: thisMachine(),
		Settings: drillSet{
			Nodes: d.nodes.kind, Schedule: d.schedule, Workers: d.workers, Lockers: d.lockers,
			LengthS: d.length.Seconds(), TTLMS: millis(d.ttl), QuarantineS: d.quarantine().Seconds(),
			Keys: d.keys, HoldMS: millis(d.hold), Seed: d.seed, Fenced: d.fenced, Durable: d.durable,
			NodeTimeoutMS: millis(d.nodeTimeout), Proxied: d.behindProxies(),
		},
		Nodes: reportNodes(found),
		plan:  d.plan,
	}
}

// take adds what came of the load to the report, and what is wrong with that to the
// verdict, which has what is wrong with the history.
func (r *drillReport) take(l loaded) {
	need := time.Duration(r.Settings.QuarantineS * float64(time.Second))
	ttl := time.Duration(r.Settings.TTLMS * float64(time.Millisecond))
	out := findOutages(l.acts, len(r.Nodes), need, ttl, l.end)
	r.Timeline, r.Phases = l.beats, l.phases
	r.Outcome = measure(l.run.Holds, out, l.end)
	r.Outcome.AimBeyondMS, r.Outcome.AimFirstGrantS = millis(aimBeyond), (max(ttl, need) + time.Second).Seconds()

	for _, a := range l.acts {
		ra := reportAct{
			Kind: string(a.kind), LagMS: millis(a.delay), BeganS: a.began.Seconds(), DoneS: a.done.Seconds(), Proof: a.proof,
		}
		for _, n := range a.nodes {
			ra.Nodes = append(ra.Nodes, fmt.Sprint("n", n+1))
		}
		if a.err != nil {
			ra.Error = a.err.Error()
			r.Check.fault("%v at %.1fs did not happen, so this drill says nothing of it: %s", a.act, ra.BeganS, oneLine(a.err))
		}
		r.Faults = append(r.Faults, ra)
	}
	bad := unfounded(l.run.Holds, out.surely)
	for i, h := range bad {
		if i == spelledOut {
			r.Check.fault("and %d more grants without a quorum", len(bad)-spelledOut)
			break
		}
		r.Check.fault("granted without a quorum: %v, called at %v", h, h.Called)
	}
	if l.steps < len(r.plan) && !r.Interrupted {
		r.Check.fault("only %d of %d steps were played before the end came: want a longer -d", l.steps, len(r.plan))
	}
}

// spelledOut is how many faults of one kind are told in full.
const spelledOut = 5

// fault adds something that is wrong.
func (c *reportCheck) fault(format string, args ...any) {
	c.Clean = false
	c.Faults = append(c.Faults, fmt.Sprintf(format, args...))
}

// measure is what the faults did to the lock, by what was held. It sorts holds.
func measure(holds []history.Hold, out outages, end time.Duration) outcomes {
	gap := longestGap(holds, end)
	o := outcomes{
		Grants: len(holds), LongestGapS: (gap.to - gap.from).Seconds(), LongestGapFromS: gap.from.Seconds(), Recoveries: []recovery{},
	}
	for i, took := range waits(holds) {
		h := holds[i]
		during := stretch{h.Acquired - took, h.Acquired}
		var b *beyond
		switch {
		case touches(during, out.many):
			continue
		case touches(during, out.some):
			b = &o.Minority
		default:
			b = &o.Calm
		}
		b.Grants++
		if ms := millis(took); ms > b.LongestMS {
			b.LongestMS, b.AtS = ms, h.Acquired.Seconds()
		}
	}
	for _, s := range out.broken {
		r := recovery{SilentS: s.from.Seconds(), BackS: s.to.Seconds()}
		if s.to >= end {
			continue // healed after the load
		}
		if first, ok := firstAfter(holds, s.to); ok {
			after := (first - s.to).Seconds()
			r.FirstGrantS = &after
		}
		o.Recoveries = append(o.Recoveries, r)
	}
	return o
}
