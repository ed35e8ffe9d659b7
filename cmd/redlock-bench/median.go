package main

import (
	"slices"
)

// spread is what several repetitions gave for one figure.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf is the spread of some values; false of none.
func spreadOf(values []float64) (spread, bool) {
	if len(values) == 0 {
		return spread{}, false
	}
	return spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}, true
}

// median is the middle of some values, or halfway between the two in the middle.
// There is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratios are those of what two gave in the same repetition, where both did. A
// machine that is busier in one repetition than in another slows both of them.
func ratios(mine, theirs map[int]float64) (values []float64) {
	for rep, m := range mine {
		if t := theirs[rep]; t != 0 {
			values = append(values, m/t)
		}
	}
	return values
}
