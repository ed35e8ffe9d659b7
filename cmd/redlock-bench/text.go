package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// embeddedNote stands wherever figures from embedded servers do.
const embeddedNote = "embedded servers: this shows that it works, not how fast Redis is"

// head says what a run is on, before it starts.
func (r report) head(w io.Writer) {
	s := r.Settings
	fmt.Fprintf(w, "redlock-bench %s\n\n", r.Software.Bench)
	r.Machine.line(w)
	r.Software.line(w)
	fences := ""
	if s.Fenced {
		fences = ", with fences"
	}
	fmt.Fprintf(w, "run       %d workers, TTL %s%s, seed %d\n", s.Workers, ms(s.TTLMS), fences, s.Seed)
	nodeLines(w, r.Nodes, s.Nodes)
	switch {
	case s.Durable && s.Nodes == kindRemote:
		fmt.Fprintln(w, "          taken to be durable, as -durable says: one that restarts votes at once")
	case s.Durable:
		fmt.Fprintln(w, "          taken to be durable: nothing restarts them during the run")
	default:
		fmt.Fprintln(w, "          not taken to be durable: one that has just started does not vote yet (-durable)")
	}
}

// line says which machine it is.
func (m machine) line(w io.Writer) {
	cpu := fmt.Sprintf("%d CPUs", m.CPUs)
	if m.CPU != "" {
		cpu += " (" + m.CPU + ")"
	}
	kernel := ""
	if m.Kernel != "" {
		kernel = " " + m.Kernel
	}
	fmt.Fprintf(w, "machine   %s, GOMAXPROCS %d, %s/%s%s, %s\n", cpu, m.GOMAXPROCS, m.OS, m.Arch, kernel, m.Go)
}

// line says which versions it is.
func (v software) line(w io.Writer) {
	fmt.Fprintf(w, "library   quorumlock %s, go-redis %s\n", v.Library, v.GoRedis)
}

// nodeLines say which nodes were found, and how they came to be.
func nodeLines(w io.Writer, nodes []reportNode, kind string) {
	for i, n := range nodes {
		label := "          "
		if i == 0 {
			label = fmt.Sprintf("%-10s", fmt.Sprintf("nodes %d", len(nodes)))
		}
		if n.Error != "" {
			fmt.Fprintf(w, "%s%s  not reached: %s\n", label, n.URL, n.Error)
			continue
		}
		fmt.Fprintf(w, "%s%s  %s, %s\n", label, n.URL, n.Server, kind)
	}
}

// body says what one phase did.
func (r report) body(w io.Writer, p reportPhase) {
	about := fmt.Sprintf("each worker on %d keys of its own", ownKeys)
	if p.Name == "contended" {
		about = fmt.Sprintf("all workers on %d keys, held for %s", r.Settings.Keys, ms(r.Settings.HoldMS))
	}
	fmt.Fprintf(w, "\n%s keys: %s, %.2f s\n", p.Name, about, p.Seconds)
	if r.Settings.Nodes == kindEmbedded {
		fmt.Fprintf(w, "  (%s)\n", embeddedNote)
	}
	fmt.Fprintf(w, "  %.0f cycles/s, %d ok", p.Rate, p.OK)
	if p.CutShort > 0 {
		fmt.Fprintf(w, ", %d cut short by the end", p.CutShort)
	}
	fmt.Fprintf(w, "\n  failed: %s\n", failuresText(p.Failed))
	for _, name := range failureNames {
		if e := p.Errors[name]; e != "" {
			fmt.Fprintf(w, "    first %s: %s\n", words(name), indented(e))
		}
	}
	if p.OK == 0 {
		return
	}
	fmt.Fprintf(w, "  %-8s %10s %10s %10s %10s\n", "", "p50", "p99", "p99.9", "max")
	for _, name := range stepNames {
		if l, ok := p.Took[name]; ok {
			fmt.Fprintf(w, "  %-8s %10s %10s %10s %10s\n", name, us(l.P50), us(l.P99), us(l.P999), us(l.Max))
		}
	}
}

func failuresText(failed map[string]int64) string {
	var kinds []string
	for _, name := range failureNames {
		if n := failed[name]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %d", words(name), n))
		}
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}

// words are a name from JSON as text.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// indented keeps an error of several lines together.
func indented(e string) string { return strings.ReplaceAll(e, "\n", "\n      ") }

// foot gives the verdict.
func (c reportCheck) foot(w io.Writer, nodes int, interrupted bool) {
	fmt.Fprintf(w, "\ncheck: %d holds of %d keys\n", c.Holds, c.Keys)
	if c.Overlaps == 0 {
		fmt.Fprintln(w, "  no two holders of a key at once")
	}
	if c.Fenced > 0 && c.FenceFaults == 0 {
		fmt.Fprintf(w, "  fences rise: %d judged\n", c.Fenced)
	}
	if c.Appended > 0 && c.StoreFaults == 0 {
		fmt.Fprintf(w, "  no write lost, twice or out of order: %d in a store that checks fences\n", c.Appended)
	}
	if c.Left == 0 && c.Asked > 0 {
		fmt.Fprintf(w, "  nothing left on %d of %d nodes\n", c.Asked, nodes)
	}
	for _, n := range c.NotAsked {
		fmt.Fprintf(w, "  not asked: %s\n", indented(n))
	}
	if c.Close != "" {
		fmt.Fprintf(w, "  closing: %s\n", indented(c.Close))
	}
	for _, f := range c.Faults {
		fmt.Fprintf(w, "  FAULT: %s\n", f)
	}
	verdict := "clean"
	if !c.Clean {
		verdict = "FAILED"
	}
	if interrupted {
		verdict += ", interrupted"
	}
	fmt.Fprintf(w, "verdict: %s\n", verdict)
}

func ms(n float64) string { return (time.Duration(n * float64(time.Millisecond))).String() }

// us is a number of microseconds with three digits and a unit.
func us(n float64) string {
	unit := "µs"
	switch {
	case n >= 1e6:
		n, unit = n/1e6, "s"
	case n >= 1e3:
		n, unit = n/1e3, "ms"
	}
	switch {
	case n >= 100:
		return fmt.Sprintf("%.0f %s", n, unit)
	case n >= 10:
		return fmt.Sprintf("%.1f %s", n, unit)
	}
	return fmt.Sprintf("%.2f %s", n, unit)
}
