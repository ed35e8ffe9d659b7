package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/quorumlock/quorumlock/redlock"
)

// text is the diagnosis for people: the nodes, what to do, and a verdict. What
// nodes say of themselves is in it, so it is kept from doing anything else to a
// terminal than to be read.
func (d diagnosis) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock-bench %s doctor: MaxTTL %s", d.Software.Bench, ms(d.Settings.MaxTTLMS))
	if d.Settings.Fenced {
		b.WriteString(", with fences")
	}
	if d.Settings.Durable {
		b.WriteString(", nodes said to be durable")
	}
	b.WriteString("\n\n")
	d.table(&b)
	for _, s := range []redlock.Severity{redlock.Problem, redlock.Warning, redlock.Note} {
		d.list(&b, s)
	}
	fmt.Fprintf(&b, "\nverdict: %s\n", d.verdict())
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, b.String())
}

// table has a row for each node.
func (d diagnosis) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.StripEscape)
	fmt.Fprintln(w, "node\tserver\trole\tvotes\tup\tdurable\tmemory\trtt\tclock")
	for _, n := range d.Nodes {
		f := n.Facts
		if f == nil {
			fmt.Fprintf(w, "%s\tno answer\t-\tno\t-\t-\t-\t-\t-\n", n.Node)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Node,
			orUnknown(strings.TrimSpace(f.Server+" "+f.Version)), role(f), votes(n), up(f), n.Durable, memory(f),
			us(f.RoundTripMS*1000), offset(n.ClockOffset))
	}
	w.Flush()
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func role(f *redlock.Facts) string {
	if f.Cluster {
		return fmt.Sprintf("%s, cluster of %d", orUnknown(f.Role), f.ClusterNodes)
	}
	return orUnknown(f.Role)
}

func votes(n redlock.NodeReport) string {
	switch {
	case n.Votes:
		return "yes"
	case n.QuarantinedS > 0:
		return "in " + wholeSeconds(n.QuarantinedS).String()
	}
	return "no"
}

// wholeSeconds is a number of seconds, rounded up.
func wholeSeconds(s float64) time.Duration { return time.Duration(math.Ceil(s)) * time.Second }

// up is how long a node has run, in its two largest units.
func up(f *redlock.Facts) string {
	if f.RedisVersion == "" {
		return "unknown"
	}
	switch s := f.UptimeS; {
	case s >= 86400:
		return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
	case s >= 3600:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	case s >= 60:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	default:
		return fmt.Sprintf("%ds", s)
	}
}

// memory is what becomes of keys when there are many.
func memory(f *redlock.Facts) string {
	switch {
	case f.MaxMemoryPolicy == "":
		return "unknown"
	case f.MaxMemory == 0:
		return "no limit"
	}
	return f.MaxMemoryPolicy
}

// offset is how far a clock is off, or between what limits that is not known.
func offset(c *redlock.ClockFacts) string {
	switch {
	case c == nil:
		return "unknown"
	case math.Abs(c.AheadMS) <= c.WithinMS:
		return "±" + us(c.WithinMS*1000)
	case c.AheadMS < 0:
		return "-" + us(-c.AheadMS*1000)
	}
	return "+" + us(c.AheadMS*1000)
}

// list has the findings of one severity, what is to be said of several nodes but
// once.
func (d diagnosis) list(b *strings.Builder, s redlock.Severity) {
	var texts []string
	about := make(map[string][]string) // nodes, by text
	for _, f := range d.Findings {
		if f.Severity != s {
			continue
		}
		if about[f.Text] == nil {
			texts = append(texts, f.Text)
		}
		about[f.Text] = append(about[f.Text], f.Node)
	}
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%ss:\n", s)
	for _, text := range texts {
		who := strings.Join(about[text], ", ")
		switch {
		case who == "":
			fmt.Fprintf(b, "  %s\n", indented(text))
			continue
		case len(about[text]) == len(d.Nodes) && len(d.Nodes) > 1:
			who = "each node"
		case len(about[text]) > 1:
			who = "each of " + who
		}
		fmt.Fprintf(b, "  %s %s\n", who, indented(text))
	}
}

// verdict is the diagnosis in one line.
func (d diagnosis) verdict() string {
	counts := fmt.Sprintf("%d of %d nodes may vote, %d are needed", d.Voters, len(d.Nodes), d.Quorum)
	switch {
	case !d.QuorumMayVote:
		if s, ok := d.untilQuorum(); ok {
			counts += fmt.Sprintf("; after quarantine, in %v, there are enough", wholeSeconds(s))
		}
		return "NO QUORUM, " + counts
	case d.worst() == redlock.Problem:
		return "PROBLEMS, " + counts
	case d.worst() == redlock.Warning:
		return "works, with warnings, " + counts
	}
	return "fine, " + counts
}

// untilQuorum is when enough of those in quarantine have left it, in seconds, if
// they make a quorum.
func (d diagnosis) untilQuorum() (float64, bool) {
	var ends []float64
	for _, n := range d.Nodes {
		if n.QuarantinedS > 0 {
			ends = append(ends, n.QuarantinedS)
		}
	}
	slices.Sort(ends)
	missing := d.Quorum - d.Voters
	if missing > len(ends) {
		return 0, false
	}
	return ends[missing-1], true
}
