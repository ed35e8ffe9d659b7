package main

import (
	"fmt"
	"slices"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/chart"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// faultPlots are the rate and the latency of each scene as time passes.
func (c comparison) faultPlots(scenes []scored) (plots []plot, err error) {
	for _, sc := range scenes {
		rate := chart.Lines{Title: sc.Title + ": cycles per second over time", XLabel: "seconds", YLabel: "cycles/s", X: chart.Short, Y: chart.Short}
		slow := chart.Lines{Title: sc.Title + ": acquire p99 over time", XLabel: "seconds", YLabel: "acquire p99", X: chart.Short, Y: chart.Micros, YLog: true}
		var courses []*trial.Course
		for _, r := range sc.Rows {
			x := c.firstCourse(sc.Name, r.Who)
			courses = append(courses, x)
			if x == nil {
				continue
			}
			rates, slows := chart.Series{Color: colorOf(r.Who)}, chart.Series{Color: colorOf(r.Who)}
			for _, m := range x.Timeline {
				middle := m.AtS + 0.05
				rates.Points = append(rates.Points, chart.Point{X: middle, Y: m.Rate})
				slows.Points = append(slows.Points, chart.Point{X: middle, Y: m.P99, Gap: m.P99 == 0})
			}
			rate.Series, slow.Series = append(rate.Series, rates), append(slow.Series, slows)
			if len(rate.Bands) == 0 {
				rate.Bands = []chart.Band{{From: x.BeganS, To: x.EndedS, Label: "fault"}}
				slow.Bands = rate.Bands
			}
		}
		if len(rate.Series) == 0 {
			continue
		}
		who := legendOf([]scored{sc})
		t := courseTable(sc, courses)
		first, err := draw(plot{Title: sc.Title + ": rate", Legend: who, Caption: "Tenths of a second of the first repetition.", Table: &t}, rate)
		if err != nil {
			return nil, err
		}
		second, err := draw(plot{Title: sc.Title + ": acquire p99", Legend: who, Caption: "Of acquires that ended in each tenth of a second. Where the line is missing, none did."}, slow)
		if err != nil {
			return nil, err
		}
		plots = append(plots, first, second)
	}
	return plots, nil
}

// firstCourse is that of the first measurement.
func (c comparison) firstCourse(scene, who string) *trial.Course {
	i := slices.IndexFunc(c.Taken, func(t taken) bool {
		return t.Scene == scene && t.Who == who && t.Figures != nil && t.Figures.Fault != nil
	})
	if i < 0 {
		return nil
	}
	return c.Taken[i].Figures.Fault
}

// perRow is how many moments a row of the table has.
const perRow = 5

// courseTable is the timeline in rows of half a second. A row's p99 is the worst of its
// moments'.
func courseTable(sc scored, courses []*trial.Course) table {
	t := table{Title: sc.Title, Words: 1, Head: []string{"from"}}
	longest := 0
	for i, r := range sc.Rows {
		t.Head = append(t.Head, r.Title+", cycles/s", "worst p99")
		if courses[i] != nil {
			longest = max(longest, len(courses[i].Timeline))
		}
	}
	for from := 0; from < longest; from += perRow {
		cells := []string{fmt.Sprintf("%.1f s", float64(from)/10)}
		for _, x := range courses {
			rate, worst := absent, absent
			if x != nil && from < len(x.Timeline) {
				some := x.Timeline[from:min(from+perRow, len(x.Timeline))]
				sum, p99 := 0.0, 0.0
				for _, m := range some {
					sum, p99 = sum+m.Rate, max(p99, m.P99)
				}
				rate = grouped(sum / float64(len(some)))
				if p99 > 0 {
					worst = us(p99)
				}
			}
			cells = append(cells, rate, worst)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// alivePlots are what leases cost as there are more of them.
func (c comparison) alivePlots(scenes []scored) (plots []plot, err error) {
	if len(scenes) < 2 {
		return nil, nil
	}
	for _, of := range []struct{ title, label, metric string }{
		{"Client CPU of keeping them", "cores", "client_cores"},
		{"Client memory", "MB of heap", "heap_mb"},
	} {
		l := chart.Lines{Title: of.title + ", as in the table below", XLabel: "leases", YLabel: of.label, X: chart.Short, Y: chart.Short}
		for _, name := range legendOf(scenes) {
			s := chart.Series{Color: name.Color, Dots: true, Points: []chart.Point{{}}}
			for _, sc := range scenes {
				for _, r := range sc.Rows {
					if f, ok := r.Figures[of.metric]; ok && r.Title == name.Name {
						s.Points = append(s.Points, chart.Point{X: float64(sc.Leases), Y: f.Median})
					}
				}
			}
			l.Series = append(l.Series, s)
		}
		p, err := draw(plot{Title: of.title, Legend: legendOf(scenes), Caption: "A straight line from 0 is linear growth."}, l)
		if err != nil {
			return nil, err
		}
		plots = append(plots, p)
	}
	return plots, nil
}
