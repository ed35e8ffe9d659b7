package main

import (
	"fmt"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// aim is what the project wants to reach, next to what was measured. It is
// reported and never enforced: a machine that is busy, or has other processors,
// gives other figures. As JSON its field names stay what they are; fields may be
// added.
type aim struct {
	What    string   `json:"what"`
	Value   *float64 `json:"value"`    // null: not measured
	Unit    string   `json:"unit"`     // "×" for a ratio
	AtLeast bool     `json:"at_least"` // else at most
	Goal    float64  `json:"goal"`
	Stretch *float64 `json:"stretch,omitempty"`
}

// met says whether a value is what was wanted.
func (a aim) met(want float64) bool {
	if a.Value == nil {
		return false
	}
	if a.AtLeast {
		return *a.Value >= want
	}
	return *a.Value <= want
}

const (
	ours   = "quorumlock"
	fenced = "quorumlock-fenced"
)

// aims are those of the scenes that were played.
func (s compareSettings) aims(all measurements) (found []aim) {
	add := func(what string, value *float64, unit string, atLeast bool, goal, stretch float64) {
		if value == nil {
			return
		}
		a := aim{What: what, Value: value, Unit: unit, AtLeast: atLeast, Goal: goal}
		if stretch != 0 {
			a.Stretch = &stretch
		}
		found = append(found, a)
	}
	vs := func(scene, who, other, metric string) *float64 {
		return all.ratio(figure{scene, who, metric}, figure{scene, other, metric})
	}
	const rate = "cycles_per_s"
	for _, a := range []struct {
		c             int
		goal, stretch float64
	}{{1, 1.4, 2}, {8, 3.5, 6}, {64, 12, 20}, {256, 12, 20}} {
		add(fmt.Sprintf("cycles/s against redsync, c = %d", a.c), vs(at(a.c), ours, baseline, rate), "×", true, a.goal, a.stretch)
	}
	add("the same with fences, which redsync has not, c = 64", vs(at(64), fenced, baseline, rate), "×", true, 8, 12)
	add("share of the machine's limit for plain commands, c = 64", all.ratio(figure{at(64), ours, rate}, s.limitOf(ours, 64)), "×", true, 0.75, 1.1)
	add("acquire p99 against redsync, c = 64", vs(at(64), ours, baseline, "acquire_p99_us"), "×", false, 1./8, 1./20)
	add("client CPU per cycle against redsync, c = 64", vs(at(64), ours, baseline, "client_cpu_us"), "×", false, 1./12, 1./30)
	add("allocations per cycle, c = 64", all.median(figure{at(64), ours, "allocations"}), "", false, 20, 6)
	add("cycles/s against redislock, which uses one node, c = 64", vs(at(64), ours, "redislock", rate), "×", true, 1.5, 2.5)
	add("cycles/s against rueidislock, which uses one node, c = 64", vs(at(64), ours, "rueidislock", rate), "×", true, 1.2, 2)
	add("cycles/s against redsync, 2 ms away, c = 64", vs("rtt c=64", ours, baseline, rate), "×", true, 4, 7)
	add("cycles/s against redsync, 2 ms away, c = 256", vs("rtt c=256", ours, baseline, rate), "×", true, 10, 19)
	for _, f := range []struct{ scene, words string }{
		{faultName(trial.Kill, 1), "one node killed"}, {faultName(trial.Stop, 1), "one stopped"}, {faultName(trial.Stop, 2), "two stopped"},
	} {
		of := func(metric string) *float64 { return all.median(figure{f.scene, ours, metric}) }
		add(f.words+": rate against its own before", of("faulty_over_healthy_rate"), "×", true, 0.9, 0)
		add(f.words+": acquire p99 against its own before", of("faulty_over_healthy_acquire_p99"), "×", false, 1.5, 0)
		add(f.words+": longest acquire or release", of("longest_call_ms"), "ms", false, 300, 50)
		add(f.words+": goroutines more at its end", of("goroutines_more"), "", false, 0, 0)
	}
	for _, lockers := range []int{1, 8} {
		add(fmt.Sprintf("handovers/s against redsync, %s", plural(lockers, "locker")), vs(contendedName(lockers), ours, baseline, "handovers_per_s"), "×", true, 3.5, 4.5)
	}
	add("Jain's index over 64 workers, 8 lockers", all.median(figure{contendedName(8), ours, "jain"}), "", true, 0.95, 0.99)
	add("server commands per handover, 8 lockers", all.median(figure{contendedName(8), ours, "commands_per_handover"}), "", false, 25, 0)
	return found
}

func at(c int) string { return fmt.Sprintf("uncontended c=%d", c) }

func contendedName(lockers int) string { return fmt.Sprintf("contended lockers=%d", lockers) }

func faultName(what string, nodes int) string { return fmt.Sprintf("fault %s %d", what, nodes) }
