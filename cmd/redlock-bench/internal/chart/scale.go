package chart

import (
	"fmt"
	"math"
)

// scale puts values where they belong between two places.
type scale struct {
	from, to    float64 // places
	least, most float64 // values there
	log         bool
	ticks       []float64
}

// newScale is one for values from least to most, with ticks at round numbers. On
// a logarithmic one both are above 0.
func newScale(least, most, from, to float64, log bool) scale {
	s := scale{from: from, to: to, least: least, most: most, log: log}
	if log {
		s.least = math.Pow(10, math.Floor(math.Log10(least)+1e-9))
		s.most = math.Pow(10, math.Ceil(math.Log10(most)-1e-9))
		if s.most <= s.least {
			s.most = 10 * s.least
		}
		for t := s.least; t <= s.most*1.001; t *= 10 {
			s.ticks = append(s.ticks, t)
		}
		return s
	}
	if most <= least {
		s.most = least + 1
	}
	step := round((s.most - s.least) / 6)
	s.least = math.Floor(s.least/step+1e-9) * step
	s.most = math.Ceil(s.most/step-1e-9) * step
	for i := 0; ; i++ {
		t := s.least + float64(i)*step
		if t > s.most+step/2 {
			return s
		}
		s.ticks = append(s.ticks, t)
	}
}

// round is the first of 1, 2, 5, 10, … that is not less.
func round(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, f := range []float64{1, 2, 5} {
		if step <= f*power*1.000001 {
			return f * power
		}
	}
	return 10 * power
}

// takes says whether a value has a place: nothing that is not above 0 has one on
// a logarithmic scale.
func (s scale) takes(v float64) bool { return !s.log || v > 0 }

// at is a value's place.
func (s scale) at(v float64) float64 {
	share := (v - s.least) / (s.most - s.least)
	if s.log {
		share = math.Log(v/s.least) / math.Log(s.most/s.least)
	}
	return s.from + share*(s.to-s.from)
}

// Short is a number as it stands at an axis.
func Short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 1e6:
		return trimmed(v/1e6) + "M"
	case math.Abs(v) >= 1e3:
		return trimmed(v/1e3) + "k"
	}
	return trimmed(v)
}

func trimmed(v float64) string { return fmt.Sprintf("%.4g", v) }

// Micros is a number of microseconds as it stands at an axis.
func Micros(v float64) string {
	switch {
	case v >= 1e6:
		return trimmed(v/1e6) + " s"
	case v >= 1e3:
		return trimmed(v/1e3) + " ms"
	}
	return trimmed(v) + " µs"
}
