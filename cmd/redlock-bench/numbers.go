package main

import (
	"fmt"
	"strings"
)

// absent stands where there is no figure.
const absent = "–"

// show is the median of a figure as people read it.
func (r row) show(name string, as func(float64) string) string {
	s, ok := r.Figures[name]
	if !ok {
		return absent
	}
	return as(s.Median)
}

// fromTo is the least and the most of all repetitions.
func (r row) fromTo(name string) string {
	s, ok := r.Figures[name]
	switch {
	case !ok:
		return absent
	case r.Runs < 2:
		return "one run"
	}
	return grouped(s.Min) + "–" + grouped(s.Max)
}

func (r row) times(name string) string {
	q, ok := r.VsRedsync[name]
	if !ok {
		return absent
	}
	return times(q)
}

// left is how many keys were left behind, at worst.
func (r row) left() string {
	if r.Left == nil {
		return "?"
	}
	return fmt.Sprint(*r.Left)
}

func (r row) foreign() string {
	if r.Foreign == nil {
		return absent
	}
	return cores(*r.Foreign)
}

func (r row) failures() string { return fmt.Sprint(r.Failed) }
func (r row) cut() string      { return fmt.Sprint(r.Cut) }

// times is a ratio.
func times(q float64) string { return digits(q) + "×" }

// digits is a number with three digits, or with as many as it has before the
// point.
func digits(n float64) string {
	switch {
	case n < 0:
		return "−" + digits(-n)
	case n >= 99.95:
		return fmt.Sprintf("%.0f", n)
	case n >= 9.995:
		return fmt.Sprintf("%.1f", n)
	case n == 0:
		return "0"
	case n >= 0.0995:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.2g", n)
}

// grouped is a number with narrow spaces between thousands.
func grouped(n float64) string {
	whole := digits(n)
	if n < 1000 {
		return whole
	}
	var b strings.Builder
	for i, d := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func percent(q float64) string   { return fmt.Sprintf("%.0f %%", 100*q) }
func cores(n float64) string     { return fmt.Sprintf("%.2f", n) }
func inSeconds(n float64) string { return fmt.Sprintf("%.2f s", n) }
func millisecs(n float64) string { return us(1000 * n) }
func octets(n float64) string    { return grouped(n) + " B" }
