package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// head says what a drill is on, before it starts.
func (r drillReport) head(w io.Writer) {
	s := r.Settings
	fmt.Fprintf(w, "redlock-bench %s\n\n", r.Software.Bench)
	r.Machine.line(w)
	r.Software.line(w)
	fences := ""
	if s.Fenced {
		fences = ", with fences and a store that checks them"
	}
	fmt.Fprintf(w, "drill     %s, %d workers of %d lockers, TTL %s%s, seed %d\n", seconds(s.LengthS), s.Workers, s.Lockers, ms(s.TTLMS), fences, s.Seed)
	fmt.Fprintf(w, "          half of them on %d keys each of their own, half on %d keys for all, held for %s\n", ownKeys, s.Keys, ms(s.HoldMS))
	fmt.Fprintf(w, "          and one lease for each locker, renewed for %s\n", ms(keptTTLs*s.TTLMS))
	kind := s.Nodes
	if s.Proxied {
		kind += " behind a proxy"
	}
	named := slices.Clone(r.Nodes)
	for i, n := range named {
		named[i].URL = fmt.Sprintf("n%d %s", i+1, n.URL)
	}
	nodeLines(w, named, kind)
	switch {
	case s.Durable && s.Nodes == kindSpawn:
		fmt.Fprintln(w, "          on disk before it is answered: one that restarts votes at once")
	case s.Durable:
		fmt.Fprintln(w, "          taken to be durable, as -durable says: one that restarts votes at once")
	default:
		fmt.Fprintf(w, "          not taken to be durable: one that restarts is in quarantine for %s (MaxTTL %s)\n", seconds(s.QuarantineS), ms(s.TTLMS))
	}
	for i, a := range r.plan {
		label := "          "
		if i == 0 {
			label = "faults    "
		}
		fmt.Fprintf(w, "%s%-6v %v\n", label, a.at, a)
	}
}

// foot says what came of it and gives the verdict.
func (r drillReport) foot(w io.Writer) {
	o := r.Outcome
	fmt.Fprintf(w, "\n%d grants; the longest time without one was %s, from %s on\n", o.Grants, seconds(o.LongestGapS), seconds(o.LongestGapFromS))
	for _, p := range r.Phases {
		cut := ""
		if p.CutShort > 0 {
			cut = fmt.Sprintf(", %d cut short by the end", p.CutShort)
		}
		fmt.Fprintf(w, "  %-9s keys: %d cycles ok%s; failed: %s\n", p.Name, p.OK, cut, failuresText(p.Failed))
		for _, name := range failureNames {
			if e := p.Errors[name]; e != "" {
				fmt.Fprintf(w, "    first %s: %s\n", words(name), indented(e))
			}
		}
	}
	fmt.Fprintln(w, "\nlongest acquire, beyond its wait for a holder:")
	o.Calm.line(w, "no node at fault", "")
	o.Minority.line(w, "a minority at fault", fmt.Sprintf(" (aim: %s)", ms(o.AimBeyondMS)))
	for _, rec := range o.Recoveries {
		fmt.Fprintf(w, "a majority was silent from %s to %s: ", seconds(rec.SilentS), seconds(rec.BackS))
		if rec.FirstGrantS == nil {
			fmt.Fprintln(w, "no grant after that")
			continue
		}
		fmt.Fprintf(w, "first grant %s after it was back (aim: %s)\n", seconds(*rec.FirstGrantS), seconds(o.AimFirstGrantS))
	}
	r.Check.foot(w, len(r.Nodes), r.Interrupted)
}

func (b beyond) line(w io.Writer, when, aim string) {
	if b.Grants == 0 {
		fmt.Fprintf(w, "  %-20s none\n", when)
		return
	}
	fmt.Fprintf(w, "  %-20s %s of %d, at %s%s\n", when, us(b.LongestMS*1000), b.Grants, seconds(b.AtS), aim)
}

// seconds is a number of seconds to three digits after the point.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
