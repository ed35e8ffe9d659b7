package main

import "slices"

// figure is one that was measured in each repetition: whose, in which scene, and
// which metric.
type figure struct{ scene, who, metric string }

// measurements are all that were taken.
type measurements []taken

// of are a figure's values by repetition.
func (all measurements) of(f figure) map[int]float64 {
	var runs []taken
	for _, t := range all {
		if t.Scene == f.scene && t.Who == f.who {
			runs = append(runs, t)
		}
	}
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == f.metric })
	return metrics[i].values(runs)
}

// ratio is the median of the same-repetition ratios of two figures; nil if they
// have no repetition in common.
func (all measurements) ratio(a, b figure) *float64 {
	q := ratios(all.of(a), all.of(b))
	if len(q) == 0 {
		return nil
	}
	m := median(q)
	return &m
}

// median is that of a figure; nil if there is none.
func (all measurements) median(f figure) *float64 {
	values := mapValues(all.of(f))
	if len(values) == 0 {
		return nil
	}
	m := median(values)
	return &m
}

func mapValues(m map[int]float64) (values []float64) {
	for _, v := range m {
		values = append(values, v)
	}
	return values
}
