package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// text prints a comparison.
func (c comparison) text(w io.Writer) {
	fmt.Fprintf(w, "redlock-bench %s compare\n\n", c.Software.Bench)
	c.Machine.line(w)
	c.Software.line(w)
	for _, line := range c.about() {
		fmt.Fprintf(w, "%s\n", line)
	}
	for _, t := range append(c.tables(), c.aimTable(), c.promises()) {
		if len(t.Rows) > 0 {
			t.text(w)
		}
	}
	if n := c.overlaps(); n > 0 {
		fmt.Fprintf(w, "\nTWO HELD A KEY AT ONCE, %d times\n", n)
	}
	if c.Interrupted {
		fmt.Fprintf(w, "\ninterrupted: %d measurements were taken\n", len(c.Taken))
	}
}

// about says how the figures came to be, a sentence or two a line.
func (c comparison) about() []string {
	s := c.Settings
	lines := []string{
		fmt.Sprintf("%d × %s, %s; %s of %v each, taken in turn, every one in a process of its own%s. Figures are medians; × is the median of same-repetition ratios.",
			s.Count, c.Server, s.Nodes, plural(s.Repetitions, "measurement"), time.Duration(s.LengthS*float64(time.Second)), c.fresh()),
		c.load(),
	}
	if s.Nodes == kindEmbedded {
		lines = append(lines, embeddedNote+".")
	}
	return lines
}

func (c comparison) fresh() string {
	if c.Settings.Nodes == kindSpawn {
		return " and on servers that had just been started"
	}
	return ""
}

// load says who else used the machine.
func (c comparison) load() string {
	var all []float64
	for _, t := range c.Taken {
		if t.Figures != nil && t.Figures.Others != nil {
			all = append(all, t.Figures.Others.Cores)
		}
	}
	s, ok := spreadOf(all)
	if !ok {
		return "Who else used the processors is not known here."
	}
	who, where := "Others", "Client and servers share them."
	if c.Settings.Nodes == kindRemote {
		who, where = "Others, the servers included if they are here,", ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s used %s of %d processors while it measured (median; %s to %s). %s",
		who, cores(s.Median), c.Machine.CPUs, cores(s.Min), cores(s.Max), where))
}

// aimTable is what the project wants to reach.
func (c comparison) aimTable() table {
	t := table{Title: "Aims", Words: 1, Head: []string{"", "measured", "goal", "stretch", ""}, Notes: []string{
		"Reported and not judged: other machines, and busy ones, give other figures.",
	}}
	for _, a := range c.Aims {
		limit := "≤ "
		if a.AtLeast {
			limit = "≥ "
		}
		stretch, verdict := absent, "missed"
		if a.Stretch != nil {
			stretch = limit + a.number(*a.Stretch)
		}
		switch {
		case a.Stretch != nil && a.met(*a.Stretch):
			verdict = "stretch reached"
		case a.met(a.Goal):
			verdict = "reached"
		}
		t.Rows = append(t.Rows, []string{a.What, a.number(*a.Value), limit + a.number(a.Goal), stretch, verdict})
	}
	return t
}

func (a aim) number(n float64) string {
	switch a.Unit {
	case "×":
		return times(n)
	case "":
		return digits(n)
	}
	return digits(n) + " " + a.Unit
}

// promises is who was compared, and what can be expected of each.
func (c comparison) promises() table {
	t := table{Title: "Who was compared", Words: 5, Head: []string{"", "version", "set up with", "promises", "does not"}}
	for _, r := range c.Rivals {
		t.Rows = append(t.Rows, []string{r.Title, r.Module + " " + r.Version, r.Setup, strings.Join(r.Does, "; "), strings.Join(r.DoesNot, "; ")})
	}
	return t
}
