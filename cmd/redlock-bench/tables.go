package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is figures for people, the same in text, in Markdown and in HTML. The
// first column is words and the others are numbers.
type table struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

// text prints a table with its columns aligned.
func (t table) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.title)
	widths := make([]int, len(t.head))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, cell := range r {
			room := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + room)
			} else {
				line.WriteString("  " + room + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, n := range t.notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
}

// text prints a comparison.
func (c comparison) text(w io.Writer) {
	for _, t := range c.tables() {
		t.text(w)
	}
}

// tables are a comparison's.
func (c comparison) tables() (all []table) {
	for _, sc := range c.Scenes {
		all = append(all, c.uncontended(sc))
	}
	return all
}

func (c comparison) uncontended(sc scored) table {
	t := table{title: sc.Title, head: []string{"", "cycles/s", "min to max", "× redsync", "acquire p50", "p99", "p99.9", "client CPU", "server CPU", "allocs", "commands", "left", "failed"}}
	for _, r := range sc.Rows {
		t.rows = append(t.rows, []string{
			r.Title, r.count("cycles_per_s"), r.fromTo("cycles_per_s"), r.times("cycles_per_s"),
			r.us("acquire_p50_us"), r.us("acquire_p99_us"), r.us("acquire_p99_9_us"),
			r.us("client_cpu_us"), r.us("server_cpu_us"), r.count("allocations"), r.count("server_commands"), r.left(), fmt.Sprint(r.Failed + int64(r.Cut)),
		})
	}
	return t
}

// absent stands where there is no figure.
const absent = "–"

func (r row) count(name string) string {
	s, ok := r.Figures[name]
	if !ok {
		return absent
	}
	return grouped(s.Median)
}

func (r row) fromTo(name string) string {
	s, ok := r.Figures[name]
	if !ok {
		return absent
	}
	return grouped(s.Min) + " to " + grouped(s.Max)
}

func (r row) us(name string) string {
	s, ok := r.Figures[name]
	if !ok {
		return absent
	}
	return us(s.Median)
}

func (r row) times(name string) string {
	q, ok := r.VsRedsync[name]
	if !ok {
		return absent
	}
	return fmt.Sprintf("%.3g", q)
}

func (r row) left() string {
	if r.Left == nil {
		return absent
	}
	return fmt.Sprint(*r.Left)
}

// grouped is a number with spaces between thousands, and with three digits at
// least.
func grouped(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.3g", n)
	}
	digits := fmt.Sprintf("%.0f", n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(d)
	}
	return b.String()
}
