package main

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 100, 2}, 3}} {
		before := slices.Clone(test.values)
		if got := median(test.values); got != test.want || !reflect.DeepEqual(test.values, before) {
			t.Errorf("%v: %v, want %v", before, got, test.want)
		}
	}
	if s, ok := spreadOf([]float64{5, 1, 3}); !ok || s != (spread{Median: 3, Min: 1, Max: 5}) {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := spreadOf(nil); ok {
		t.Error("a spread of nothing")
	}
}

func TestRatiosAreOfTheSameRepetition(t *testing.T) {
	// In the second the machine was busy, which slowed both to a tenth.
	got := ratios(map[int]float64{1: 100, 2: 10, 3: 90}, map[int]float64{1: 50, 2: 5, 4: 1})
	slices.Sort(got)
	if !reflect.DeepEqual(got, []float64{2, 2}) {
		t.Errorf("%v", got)
	}
	if got := ratios(map[int]float64{1: 1}, map[int]float64{1: 0}); got != nil {
		t.Errorf("by nothing: %v", got)
	}
}

// rated is a measurement with a rate.
func rated(scene, who string, rep int, rate float64) taken {
	return taken{Scene: scene, Who: who, Repetition: rep, Figures: &trial.Figures{Seconds: 1, Rate: rate}}
}

// twoReps are settings for one scene in each of two modes.
func twoReps(t *testing.T) compareSettings {
	t.Helper()
	s, err := parseCompare([]string{"-modes", "limit,uncontended", "-with", "quorumlock,redsync,redislock", "-c", "64", "-reps", "2"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScoresAreMediansAndSameRepetitionRatios(t *testing.T) {
	s := twoReps(t)
	left, foreign := 3, 0.5
	worse := rated(at(64), "redsync", 2, 20)
	worse.Figures.Left, worse.Figures.Failed, worse.Figures.Cut, worse.Figures.FirstError = &left, 2, 1, "slow"
	worse.Figures.Others = &trial.Others{Cores: foreign}
	all := measurements{
		rated(limitName(5, shape{4, 64}), "plain", 1, 1000), rated(limitName(5, shape{4, 64}), "plain", 2, 500),
		rated(limitName(1, shape{4, 64}), "plain", 1, 2000),
		rated(at(64), "quorumlock", 1, 400), rated(at(64), "redsync", 1, 40), rated(at(64), "redislock", 1, 200),
		rated(at(64), "quorumlock", 2, 400), worse, {Scene: at(64), Who: "redislock", Repetition: 2, Error: "gone"},
	}
	scenes := s.score(all)
	sc := scenes[len(scenes)-1]
	if sc.Name != at(64) || len(sc.Rows) != 3 {
		t.Fatalf("%+v", scenes)
	}
	mine, theirs, single := sc.Rows[0], sc.Rows[1], sc.Rows[2]
	if got := mine.Figures["cycles_per_s"]; got != (spread{400, 400, 400}) || mine.Runs != 2 {
		t.Errorf("%+v of %d runs", got, mine.Runs)
	}
	if got := mine.VsRedsync["cycles_per_s"]; got != 15 { // of 10 and 20, where the ratio of medians is 13.3
		t.Errorf("%v times redsync", got)
	}
	if got := *mine.OfLimit; math.Abs(got-0.6) > 1e-9 { // of 0.4 and 0.8
		t.Errorf("%v of the limit", got)
	}
	if got := *single.OfLimit; got != 0.1 {
		t.Errorf("who uses one node has %v of the limit of one", got)
	}
	if theirs.Failed != 2 || theirs.Cut != 1 || *theirs.Left != 3 || *theirs.Foreign != 0.5 || !reflect.DeepEqual(theirs.Errors, []string{"slow"}) {
		t.Errorf("%+v", theirs)
	}
	if single.Runs != 1 || !reflect.DeepEqual(single.Errors, []string{"gone"}) {
		t.Errorf("%+v", single)
	}
}

func TestAimsAreMetFromTheRightSide(t *testing.T) {
	three := 3.0
	for _, test := range []struct {
		a    aim
		want bool
	}{
		{aim{Value: &three, AtLeast: true, Goal: 3}, true},
		{aim{Value: &three, AtLeast: true, Goal: 3.1}, false},
		{aim{Value: &three, Goal: 3}, true},
		{aim{Value: &three, Goal: 2.9}, false},
		{aim{Goal: 100}, false},
	} {
		if got := test.a.met(test.a.Goal); got != test.want {
			t.Errorf("%+v: %v", test.a, got)
		}
	}
	s := twoReps(t)
	aims := s.aims(measurements{rated(at(64), "quorumlock", 1, 400), rated(at(64), "redsync", 1, 40)})
	if len(aims) != 1 || *aims[0].Value != 10 || aims[0].Goal != 12 || *aims[0].Stretch != 20 || !aims[0].AtLeast {
		t.Errorf("%+v", aims)
	}
}

func TestEveryMetricIsInTheFiguresOfSomeMode(t *testing.T) {
	one := 1.0
	l := &trial.Latency{P50: 1, P99: 1, P999: 1, Max: 1}
	full := trial.Figures{
		Rate: 1, Acquire: l, Release: l, Cycle: l, Cost: &trial.Cost{ServerCPU: &one, Commands: &one, WireBytes: &one},
		Contended: &trial.Fairness{Commands: &one}, Alive: &trial.Keeping{ServerCores: &one},
		Fault: &trial.Course{Healthy: trial.Spell{Rate: 1, Acquire: l}, Faulty: trial.Spell{Rate: 1, Acquire: l}},
	}
	names := make(map[string]bool)
	for _, m := range metrics {
		if m.get(full) == nil {
			t.Errorf("%s is nowhere", m.name)
		}
		if v := m.get(trial.Figures{}); v != nil && m.name != "cycles_per_s" {
			t.Errorf("%s is %v where nothing is", m.name, *v)
		}
		if names[m.name] {
			t.Errorf("two are called %s", m.name)
		}
		names[m.name] = true
	}
}

func TestScenesAreNamedOnceAndHaveACast(t *testing.T) {
	for _, args := range [][]string{{}, {"-quick"}, {"-nodes", "spawn:1"}, {"-nodes", "embedded:3"}} {
		s, err := parseCompare(args)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		modes := make(map[string]bool)
		for _, sc := range s.scenes() {
			if seen[sc.Name] || sc.Title == "" || len(sc.cast) == 0 || sc.task.Length <= 0 {
				t.Errorf("%v: %+v", args, sc)
			}
			seen[sc.Name], modes[sc.task.Mode] = true, true
			for _, who := range sc.cast {
				if lock, _ := rival.Named(who); sc.task.Mode == trial.Fault && lock.Single {
					t.Errorf("%s is in %s, and has only one node", who, sc.Name)
				}
			}
		}
		for _, m := range s.modes {
			if !modes[m] && !(m == trial.Fault && s.nodes.count == 1) {
				t.Errorf("%v: nothing for mode %s", args, m)
			}
		}
	}
}
