package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// answer is what one node has said to an audit.
type answer struct {
	node  string
	facts *Facts
	err   error // why there are none

	// met: the Locker has connected to the node, or tried to. standing is then why it
	// counts no vote of it; it has seen more than the node says.
	met      bool
	standing error
	run      string // the process that it met, "" if it does not know
}

// rules are what nodes are judged by.
type rules struct {
	maxTTL       time.Duration
	need         time.Duration // how long a restarted node is in quarantine
	nodeTimeout  time.Duration
	prefixed     bool // all keys begin with Config.KeyPrefix
	fenced       bool
	durable      bool // nodes are said to keep every key
	unidentified bool // nodes that do not say what they are may vote
}

// judge says what follows from what the nodes have said.
func judge(answers []answer, r rules) *Report {
	report := &Report{Quorum: quorum.Majority(len(answers)), Findings: []Finding{}}
	clocks := []ClockFacts{{}} // this machine's first
	for _, a := range answers {
		if a.facts != nil && a.facts.Clock != nil {
			clocks = append(clocks, *a.facts.Clock)
		}
	}
	nth := 0
	for i, a := range answers {
		n := NodeReport{Node: a.node, Votes: true, Facts: a.facts}
		add := func(s Severity, format string, args ...any) {
			report.Findings = append(report.Findings, Finding{s, a.node, fmt.Sprintf(format, args...)})
		}
		if b := r.bar(answers, i); b != nil {
			n.Votes, n.WhyNot, n.QuarantinedS = false, b.why, b.quarantine.Seconds()
			add(Problem, "%s: %s", b.why, b.todo)
		}
		if f := a.facts; f != nil {
			n.Run = f.RunID[:min(len(f.RunID), 8)]
			n.Durable, _ = f.Persistence.durable()
			if f.Clock != nil {
				nth++
				offset := against(clocks, nth)
				n.ClockOffset = &offset
			}
			r.findings(n, add)
		}
		if n.Votes {
			report.Voters++
		}
		report.Nodes = append(report.Nodes, n)
	}
	report.QuorumMayVote = report.Voters >= report.Quorum
	r.together(report, against(clocks, 0))
	slices.SortStableFunc(report.Findings, func(a, b Finding) int {
		order := []Severity{Problem, Warning, Note}
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return report
}

// bar is what keeps a node from voting, and what to do about it.
type bar struct {
	why, todo  string
	quarantine time.Duration // 0: not that
}

// bar is what keeps the ith node from voting, or nil.
func (r rules) bar(answers []answer, i int) *bar {
	a, f := answers[i], answers[i].facts
	if f == nil {
		return &bar{
			why:  fmt.Sprintf("does not answer: %v", a.err),
			todo: "see whether it is up, and whether this machine reaches it",
		}
	}
	twin := twin(answers, i)
	var quarantined *QuarantineError
	switch {
	case f.RunID == "" && !r.unidentified:
		reason := "INFO: " + f.RefusedInfo
		if f.RefusedInfo == "" {
			reason = "INFO names no run_id, as behind a proxy"
		}
		return &bar{
			why:  "does not say what it is (" + reason + ")",
			todo: permit("info") + "; otherwise a restart that forgot every lock would go unnoticed",
		}
	case f.Role != "" && f.Role != "master":
		return &bar{
			why:  "is a " + f.Role,
			todo: "put a master of its own in its place; a copy lags behind, and forgets what it had not copied",
		}
	case f.ClusterNodes > 1:
		return &bar{
			why:  fmt.Sprintf("is one of %d nodes of a cluster", f.ClusterNodes),
			todo: "put a server of its own in its place; a cluster moves keys, and lets replicas take over. One node alone in its cluster is fine",
		}
	case f.Cluster && f.ClusterNodes < 1 && !r.unidentified:
		return &bar{
			why:  "is in cluster mode, and does not say whether it is alone there",
			todo: permit("cluster|info"),
		}
	case twin != "":
		return &bar{
			why:  "is the same server as " + twin,
			todo: "take one of the two off the list of every client, and put a server of its own in its place; one server has one vote",
		}
	case errors.As(a.standing, &quarantined):
		return r.quarantined(quarantined)
	case a.run != "" && a.run != f.RunID && !r.durable:
		return r.quarantined(&QuarantineError{For: r.need, Why: "restarted since it was last asked", MaxTTL: r.maxTTL})
	case errors.Is(a.standing, errStalled):
		return &bar{why: a.standing.Error(), todo: "ask again in a moment"}
	case a.standing != nil: // not connected, or no voter when it was
		return &bar{why: "is " + a.standing.Error(), todo: "ask again in a moment"}
	case !a.met && !r.durable && f.RunID != "" && r.need > seconds(f.UptimeS):
		return r.quarantined(&QuarantineError{
			For: r.need - seconds(max(0, f.UptimeS)), Why: fmt.Sprintf("restarted %v ago", seconds(f.UptimeS)), MaxTTL: r.maxTTL,
		})
	case f.Loading:
		return &bar{why: "is loading its data", todo: "wait until it has; it answers nothing else before"}
	case f.RefusedWrites != "":
		return &bar{why: "writes nothing (" + f.RefusedWrites + ")", todo: "see its log"}
	case f.RefusedKey != "" && r.prefixed:
		return &bar{
			why:  "does not let its user touch the keys of the lock (" + f.RefusedKey + ")",
			todo: "permit all keys that begin with Config.KeyPrefix: ACL SETUSER … ~PREFIX*",
		}
	}
	if missing := r.missing(f); slices.ContainsFunc(missing, r.votesBy) {
		return &bar{why: "does not let its user run " + strings.Join(missing, ", "), todo: permit(missing...)}
	}
	return nil
}

func (r rules) quarantined(q *QuarantineError) *bar {
	return &bar{
		why:        "is " + q.Error(),
		todo:       "wait; a lock that it may have forgotten could still be held until then",
		quarantine: q.For,
	}
}

// twin is another node that is the same server as the ith and has its vote: that
// which the Locker has admitted, else the first.
func twin(answers []answer, i int) string {
	admitted := func(a answer) bool { return a.met && !errors.Is(a.standing, errNoVoter) }
	self := answers[i]
	for j, other := range answers {
		same := j != i && other.facts != nil && other.facts.RunID != "" && other.facts.RunID == self.facts.RunID
		if same && (admitted(other) || j < i && !admitted(self)) {
			return other.node
		}
	}
	return ""
}

// against is how a clock stands to the middle of the others, or of all where the
// others are even in number and have no middle.
func against(clocks []ClockFacts, self int) ClockFacts {
	others := slices.Clone(clocks)
	if len(clocks)%2 == 0 {
		others = slices.Delete(others, self, self+1)
	}
	slices.SortFunc(others, func(a, b ClockFacts) int { return cmp.Compare(a.AheadMS, b.AheadMS) })
	middle := others[len(others)/2]
	micros := func(ms float64) float64 { return math.Round(ms*1000) / 1000 }
	return ClockFacts{
		AheadMS:  micros(clocks[self].AheadMS - middle.AheadMS),
		WithinMS: micros(clocks[self].WithinMS + middle.WithinMS),
	}
}

func seconds(s int64) time.Duration { return time.Duration(s) * time.Second }
