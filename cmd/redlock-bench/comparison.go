package main

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// comparison is the outcome of a comparison. As JSON its field names stay what
// they are; fields may be added.
type comparison struct {
	Started     time.Time          `json:"started"`
	Took        float64            `json:"took_s"`
	Interrupted bool               `json:"interrupted"`
	Software    software           `json:"software"`
	Server      string             `json:"server"` // such as "redis 7.0.15"
	Machine     machine            `json:"machine"`
	Settings    comparisonSettings `json:"settings"`
	Rivals      []contestant       `json:"implementations"`
	Scenes      []scored           `json:"scenes"`
	Aims        []aim              `json:"aims"`
	Taken       measurements       `json:"measurements"` // everything that the rest is made of
}

// comparisonSettings are the flags of the comparison.
type comparisonSettings struct {
	Nodes       string  `json:"nodes"` // embedded, spawn or remote
	Count       int     `json:"nodes_count"`
	Repetitions int     `json:"repetitions"`
	LengthS     float64 `json:"length_s"` // of each measurement
	Quick       bool    `json:"quick"`
}

// contestant is who was compared.
type contestant struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Module  string   `json:"module"`
	Version string   `json:"version"`
	Setup   string   `json:"setup"`
	Does    []string `json:"promises"`
	DoesNot []string `json:"does_not_promise"`
}

// scored is a scene and how everybody did in it.
type scored struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Title   string `json:"title"`
	Workers int    `json:"workers"`
	Lockers int    `json:"lockers"`
	Leases  int    `json:"leases,omitempty"`
	Rows    []row  `json:"rows"`
}

// row is how one did in a scene, in all repetitions.
type row struct {
	Who       string             `json:"who"`
	Title     string             `json:"title"`
	Runs      int                `json:"runs"`
	Figures   map[string]spread  `json:"figures"`    // by the names of metrics
	VsRedsync map[string]float64 `json:"vs_redsync"` // medians of same-repetition ratios
	Failed    int64              `json:"failed"`     // calls, all runs together
	Cut       int                `json:"cut"`
	Overlaps  int64              `json:"overlaps"`
	Left      *int               `json:"left"`                   // the most of any run
	Foreign   *float64           `json:"foreign_cores"`          // the most of any run
	Errors    []string           `json:"first_errors,omitempty"` // of each run, each once
	OfLimit   *float64           `json:"share_of_limit"`         // of the machine's for plain commands; null in scenes without
}

// baseline is whom the others are compared to.
const baseline = "redsync"

// score makes rows of what was measured.
func (s compareSettings) score(all measurements) (results []scored) {
	for _, sc := range s.scenes() {
		r := scored{Name: sc.Name, Mode: sc.task.Mode, Title: sc.Title, Workers: sc.task.Workers, Lockers: max(1, sc.task.Lockers), Leases: sc.task.Leases}
		for _, who := range sc.cast {
			if row := s.rowOf(sc, who, all); row.Runs > 0 || len(row.Errors) > 0 {
				r.Rows = append(r.Rows, row)
			}
		}
		if len(r.Rows) > 0 {
			results = append(results, r)
		}
	}
	return results
}

func (s compareSettings) rowOf(sc scene, who string, all measurements) row {
	r := row{Who: who, Title: sc.titleOf(who), Figures: make(map[string]spread), VsRedsync: make(map[string]float64)}
	for _, t := range all {
		if t.Scene == sc.Name && t.Who == who {
			r.take(t)
		}
	}
	for _, m := range metrics {
		own := figure{sc.Name, who, m.name}
		if s, ok := spreadOf(mapValues(all.of(own))); ok {
			r.Figures[m.name] = s
		}
		if q := all.ratio(own, figure{sc.Name, baseline, m.name}); q != nil {
			r.VsRedsync[m.name] = *q
		}
	}
	if sc.task.Mode == trial.Uncontended {
		r.OfLimit = all.ratio(figure{sc.Name, who, "cycles_per_s"}, s.limitOf(who, sc.task.Workers))
	}
	return r
}

// take adds up what a run has besides figures.
func (r *row) take(t taken) {
	failures := []string{t.Error}
	if f := t.Figures; f != nil {
		r.Runs++
		r.Failed += f.Failed
		r.Cut += f.Cut
		r.Overlaps += f.Overlaps
		if f.Left != nil && (r.Left == nil || *f.Left > *r.Left) {
			r.Left = f.Left
		}
		if f.Others != nil && (r.Foreign == nil || f.Others.Cores > *r.Foreign) {
			r.Foreign = &f.Others.Cores
		}
		failures = append(failures, f.FirstError, f.Closing)
	}
	for _, e := range failures {
		if e != "" && !slices.Contains(r.Errors, e) {
			r.Errors = append(r.Errors, e)
		}
	}
}

// contestants are the implementations with their versions.
func contestants(locks []rival.Lock) (all []contestant) {
	for _, l := range locks {
		all = append(all, contestant{
			Name: l.Name, Title: l.Title, Module: l.Module, Version: l.Version(), Setup: l.Setup, Does: l.Does, DoesNot: l.DoesNot,
		})
	}
	return all
}
