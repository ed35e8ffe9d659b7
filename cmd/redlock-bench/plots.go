package main

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/chart"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/pump"
)

// draw makes a plot of a chart.
func draw(p plot, from interface{ SVG() (template.HTML, error) }) (plot, error) {
	var err error
	p.SVG, err = from.SVG()
	return p, err
}

// overWorkers has a line for everybody, over how many workers there are.
func overWorkers(scenes []scored, metric string) (all []chart.Series) {
	for _, l := range legendOf(scenes) {
		s := chart.Series{Color: l.Color, Dots: true}
		for _, sc := range scenes {
			for _, r := range sc.Rows {
				if f, ok := r.Figures[metric]; ok && r.Title == l.Name {
					s.Points = append(s.Points, chart.Point{X: float64(sc.Workers), Y: f.Median})
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// workersOf are the places of the horizontal axis.
func workersOf(scenes []scored) (ticks []float64) {
	for _, sc := range scenes {
		ticks = append(ticks, float64(sc.Workers))
	}
	return ticks
}

// busiest is the scene that most is said of: 64 workers, or as near as there is.
func busiest(scenes []scored) scored {
	best := scenes[0]
	for _, sc := range scenes {
		if sc.Workers == crowd || best.Workers != crowd && sc.Workers > best.Workers {
			best = sc
		}
	}
	return best
}

func (c comparison) speedPlots(scenes []scored) (plots []plot, err error) {
	rate, err := c.ratePlot(scenes, true)
	if err != nil {
		return nil, err
	}
	sc := busiest(scenes)
	latency, err := latencyPlot(sc)
	if err != nil {
		return nil, err
	}
	cost, err := costPlot(sc)
	return []plot{rate, latency, cost}, err
}

func (c comparison) distantPlots(scenes []scored) ([]plot, error) {
	rate, err := c.ratePlot(scenes, false)
	if err != nil {
		return nil, err
	}
	latency, err := latencyPlot(busiest(scenes))
	return []plot{rate, latency}, err
}

// ratePlot is throughput against concurrency, with the limit of the machine.
func (c comparison) ratePlot(scenes []scored, limited bool) (plot, error) {
	if len(scenes) == 1 {
		return draw(plot{Title: fmt.Sprintf("Throughput, c = %d", scenes[0].Workers)}, barsOf(scenes[0], "cycles_per_s", "cycles/s"))
	}
	p := plot{Title: "Throughput against concurrency", Legend: legendOf(scenes)}
	l := chart.Lines{
		Title: p.Title + ", in cycles per second, as in the table below", XLabel: "workers", YLabel: "cycles/s", XLog: true, YLog: true,
		XTicks: workersOf(scenes), X: chart.Short, Y: chart.Short, Series: overWorkers(scenes, "cycles_per_s"),
	}
	limit := chart.Series{Color: colorLimit, Dashed: true}
	for _, sc := range scenes {
		if v := c.Taken.median(figure{limitName(c.Settings.Count, limitShape(sc.Workers)), pump.Schemes[0].Name, "cycles_per_s"}); limited && v != nil {
			limit.Points = append(limit.Points, chart.Point{X: float64(sc.Workers), Y: *v})
		}
	}
	if len(limit.Points) > 0 {
		l.Series = append(l.Series, limit)
		p.Legend = append(p.Legend, legend{"the machine's limit, plain commands", colorLimit, true})
	}
	return draw(p, l)
}

// barsOf has a bar for everybody.
func barsOf(sc scored, metric, label string) chart.Bars {
	b := chart.Bars{Title: label + ", as in the table below", XLabel: label, X: chart.Short}
	for _, r := range sc.Rows {
		b.Bars = append(b.Bars, chart.Bar{
			Name: r.Title, Note: r.show(metric, grouped), Parts: []chart.Part{{Color: colorOf(r.Who), Value: r.Figures[metric].Median}},
		})
	}
	return b
}

// latencyPlot is how long an acquire takes.
func latencyPlot(sc scored) (plot, error) {
	b := chart.Bars{Title: "Acquire latency percentiles, as in the table below", XLabel: "p50, p99 and p99.9 of an acquire, logarithmic", Log: true, Spread: true, X: chart.Micros}
	for _, r := range sc.Rows {
		bar := chart.Bar{Name: r.Title, Note: r.show("acquire_p99_9_us", us)}
		for _, m := range []string{"acquire_p50_us", "acquire_p99_us", "acquire_p99_9_us"} {
			if f, ok := r.Figures[m]; ok {
				bar.Parts = append(bar.Parts, chart.Part{Color: colorOf(r.Who), Value: f.Median})
			}
		}
		b.Bars = append(b.Bars, bar)
	}
	return draw(plot{Title: fmt.Sprintf("Acquire latency, c = %d", sc.Workers)}, b)
}

// costPlot is what a cycle costs.
func costPlot(sc scored) (plot, error) {
	b := chart.Bars{Title: "Processor time of a cycle, as in the table below", XLabel: "µs of CPU per cycle: client, then servers (faint)", X: chart.Short}
	for _, r := range sc.Rows {
		client, server := r.Figures["client_cpu_us"].Median, r.Figures["server_cpu_us"].Median
		color := colorOf(r.Who)
		b.Bars = append(b.Bars, chart.Bar{
			Name: r.Title, Note: us(client + server), Parts: []chart.Part{{Color: color, Value: client}, {Color: color, Faint: true, Value: server}},
		})
	}
	return draw(plot{Title: fmt.Sprintf("CPU per cycle, c = %d", sc.Workers), Caption: "Single-node locks do a fifth of the work of the others on the servers."}, b)
}

func (c comparison) contendedPlots(scenes []scored) (plots []plot, err error) {
	for _, sc := range scenes {
		b := barsOf(sc, "handovers_per_s", "handovers/s (Jain's index)")
		for i, r := range sc.Rows {
			b.Bars[i].Note += " (" + r.show("jain", cores) + ")"
		}
		p, err := draw(plot{Title: "Handovers, " + plural(sc.Lockers, "locker")}, b)
		if err != nil {
			return nil, err
		}
		fair, err := c.sharesPlot(sc)
		if err != nil {
			return nil, err
		}
		plots = append(plots, p, fair)
	}
	return plots, nil
}

// sharesPlot is how often each worker was given the key, in one repetition.
func (c comparison) sharesPlot(sc scored) (plot, error) {
	p := plot{
		Title: "Who was served, " + plural(sc.Lockers, "locker"), Legend: legendOf([]scored{sc}),
		Caption: "Handovers of each of the 64 workers over their mean, in the first repetition: a flat line at 1 is fair.",
	}
	l := chart.Lines{Title: "Share of each worker, most first", XLabel: "worker, most served first", YLabel: "× the mean", X: chart.Short, Y: chart.Short}
	t := table{Title: p.Title, Words: 1, Head: []string{"", "most", "16th", "32nd", "48th", "least"}}
	for _, r := range sc.Rows {
		shares := c.firstShares(sc.Name, r.Who)
		if len(shares) == 0 {
			continue
		}
		s := chart.Series{Color: colorOf(r.Who)}
		for i, v := range shares {
			s.Points = append(s.Points, chart.Point{X: float64(i + 1), Y: v})
		}
		l.Series = append(l.Series, s)
		cells := []string{r.Title}
		for _, i := range []int{0, 15, 31, 47, len(shares) - 1} {
			cells = append(cells, digits(shares[min(i, len(shares)-1)]))
		}
		t.Rows = append(t.Rows, cells)
	}
	p.Table = &t
	return draw(p, l)
}

// firstShares are those of the first measurement, over their mean.
func (c comparison) firstShares(scene, who string) (shares []float64) {
	i := slices.IndexFunc(c.Taken, func(t taken) bool {
		return t.Scene == scene && t.Who == who && t.Figures != nil && t.Figures.Contended != nil && t.Figures.Contended.Handovers > 0
	})
	if i < 0 {
		return nil
	}
	f := c.Taken[i].Figures.Contended
	mean := float64(f.Handovers) / float64(len(f.Shares))
	for _, s := range f.Shares {
		shares = append(shares, float64(s)/mean)
	}
	return shares
}
