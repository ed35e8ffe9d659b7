package main

import "github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"

// metrics are what medians and ratios are taken of. Their names are in JSON, and
// end with the unit.
var metrics = []metric{
	{"cycles_per_s", func(f trial.Figures) (float64, bool) { return f.Rate, f.Seconds > 0 }},
	{"acquire_p50_us", ofLatency(acquire, func(l trial.Latency) float64 { return l.P50 })},
	{"acquire_p99_us", ofLatency(acquire, func(l trial.Latency) float64 { return l.P99 })},
	{"acquire_p99_9_us", ofLatency(acquire, func(l trial.Latency) float64 { return l.P999 })},
	{"acquire_max_us", ofLatency(acquire, func(l trial.Latency) float64 { return l.Max })},
	{"release_p50_us", ofLatency(release, func(l trial.Latency) float64 { return l.P50 })},
	{"release_p99_us", ofLatency(release, func(l trial.Latency) float64 { return l.P99 })},
	{"release_max_us", ofLatency(release, func(l trial.Latency) float64 { return l.Max })},
	{"client_cpu_us", ofCost(func(c trial.Cost) *float64 { return &c.ClientCPU })},
	{"server_cpu_us", ofCost(func(c trial.Cost) *float64 { return c.ServerCPU })},
	{"allocations", ofCost(func(c trial.Cost) *float64 { return &c.Allocs })},
	{"allocated_bytes", ofCost(func(c trial.Cost) *float64 { return &c.AllocBytes })},
	{"server_commands", ofCost(func(c trial.Cost) *float64 { return c.Commands })},
	{"wire_bytes", ofCost(func(c trial.Cost) *float64 { return c.WireBytes })},
}

func acquire(f trial.Figures) *trial.Latency { return f.Acquire }
func release(f trial.Figures) *trial.Latency { return f.Release }

func ofLatency(of func(trial.Figures) *trial.Latency, get func(trial.Latency) float64) func(trial.Figures) (float64, bool) {
	return func(f trial.Figures) (float64, bool) {
		l := of(f)
		if l == nil {
			return 0, false
		}
		return get(*l), true
	}
}

func ofCost(get func(trial.Cost) *float64) func(trial.Figures) (float64, bool) {
	return func(f trial.Figures) (float64, bool) {
		if f.Cost == nil {
			return 0, false
		}
		if v := get(*f.Cost); v != nil {
			return *v, true
		}
		return 0, false
	}
}
