package main

import "github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"

// metric is a figure that is compared. Its name is in JSON and ends with the
// unit.
type metric struct {
	name string
	get  func(trial.Figures) *float64 // nil: not among these
}

// values are a metric's in each repetition that has it.
func (m metric) values(runs []taken) map[int]float64 {
	values := make(map[int]float64)
	for _, t := range runs {
		if t.Figures == nil {
			continue
		}
		if v := m.get(*t.Figures); v != nil {
			values[t.Repetition] = *v
		}
	}
	return values
}

// metrics are what medians and ratios are taken of.
var metrics = []metric{
	{"cycles_per_s", func(f trial.Figures) *float64 { return &f.Rate }},

	of("acquire_p50_us", acquire, func(l *trial.Latency) *float64 { return &l.P50 }),
	of("acquire_p99_us", acquire, func(l *trial.Latency) *float64 { return &l.P99 }),
	of("acquire_p99_9_us", acquire, func(l *trial.Latency) *float64 { return &l.P999 }),
	of("acquire_max_us", acquire, func(l *trial.Latency) *float64 { return &l.Max }),
	of("release_p50_us", release, func(l *trial.Latency) *float64 { return &l.P50 }),
	of("release_p99_us", release, func(l *trial.Latency) *float64 { return &l.P99 }),
	of("release_max_us", release, func(l *trial.Latency) *float64 { return &l.Max }),

	of("client_cpu_us", spent, func(c *trial.Cost) *float64 { return &c.ClientCPU }),
	of("server_cpu_us", spent, func(c *trial.Cost) *float64 { return c.ServerCPU }),
	of("allocations", spent, func(c *trial.Cost) *float64 { return &c.Allocs }),
	of("allocated_bytes", spent, func(c *trial.Cost) *float64 { return &c.AllocBytes }),
	of("server_commands", spent, func(c *trial.Cost) *float64 { return c.Commands }),
	of("wire_bytes", spent, func(c *trial.Cost) *float64 { return c.WireBytes }),

	of("handovers_per_s", shared, func(x *trial.Fairness) *float64 { return &x.PerSecond }),
	of("jain", shared, func(x *trial.Fairness) *float64 { return &x.Jain }),
	of("wait_p50_us", shared, func(x *trial.Fairness) *float64 { return &x.WaitP50 }),
	of("wait_p99_us", shared, func(x *trial.Fairness) *float64 { return &x.WaitP99 }),
	of("longest_wait_us", shared, func(x *trial.Fairness) *float64 { return &x.LongestWait }),
	of("longest_over_median_wait", shared, func(x *trial.Fairness) *float64 { return &x.LongestOverMedian }),
	of("commands_per_handover", shared, func(x *trial.Fairness) *float64 { return x.Commands }),

	of("faulty_cycles_per_s", course, func(x *trial.Course) *float64 { return &x.Faulty.Rate }),
	of("faulty_over_healthy_rate", course, func(x *trial.Course) *float64 { return quotient(&x.Faulty.Rate, &x.Healthy.Rate) }),
	of("faulty_acquire_p50_us", course, func(x *trial.Course) *float64 { return half(x.Faulty.Acquire) }),
	of("faulty_acquire_p99_us", course, func(x *trial.Course) *float64 { return p99(x.Faulty.Acquire) }),
	of("faulty_over_healthy_acquire_p99", course, func(x *trial.Course) *float64 {
		return quotient(p99(x.Faulty.Acquire), p99(x.Healthy.Acquire))
	}),
	of("longest_acquire_ms", course, func(x *trial.Course) *float64 { return &x.LongestAcquire }),
	of("longest_release_ms", course, func(x *trial.Course) *float64 { return &x.LongestRelease }),
	of("longest_call_ms", course, func(x *trial.Course) *float64 {
		longest := max(x.LongestAcquire, x.LongestRelease)
		return &longest
	}),
	of("unfinished_calls", course, func(x *trial.Course) *float64 { return whole64(x.Unfinished) }),
	of("goroutines_more", course, func(x *trial.Course) *float64 { return whole64(x.GoroutinesEnd - x.GoroutinesBefore) }),

	of("acquire_all_s", renewed, func(x *trial.Keeping) *float64 { return &x.AcquireS }),
	of("planned_interval_s", renewed, func(x *trial.Keeping) *float64 { return &x.PlannedS }),
	of("renewal_interval_p50_s", renewed, func(x *trial.Keeping) *float64 { return &x.P50S }),
	of("renewal_interval_longest_s", renewed, func(x *trial.Keeping) *float64 { return &x.LongestS }),
	of("least_left_s", renewed, func(x *trial.Keeping) *float64 { return &x.LeastLeftS }),
	of("failed_renewals", renewed, func(x *trial.Keeping) *float64 { return whole64(int(x.Failed)) }),
	of("lost_leases", renewed, func(x *trial.Keeping) *float64 { return whole64(int(x.Lost)) }),
	of("client_cores", renewed, func(x *trial.Keeping) *float64 { return &x.ClientCores }),
	of("server_cores", renewed, func(x *trial.Keeping) *float64 { return x.ServerCores }),
	of("heap_mb", renewed, func(x *trial.Keeping) *float64 { return &x.HeapMB }),
	of("heap_bytes_per_lease", renewed, func(x *trial.Keeping) *float64 { return &x.HeapEach }),
	of("client_cpu_us_per_renewal", renewed, func(x *trial.Keeping) *float64 { return &x.CPUEach }),
}

// of is a metric that is in a part of the figures which is not always there.
func of[T any](name string, part func(trial.Figures) *T, get func(*T) *float64) metric {
	return metric{name, func(f trial.Figures) *float64 {
		p := part(f)
		if p == nil {
			return nil
		}
		return get(p)
	}}
}

func acquire(f trial.Figures) *trial.Latency { return f.Acquire }
func release(f trial.Figures) *trial.Latency { return f.Release }
func spent(f trial.Figures) *trial.Cost      { return f.Cost }
func shared(f trial.Figures) *trial.Fairness { return f.Contended }
func course(f trial.Figures) *trial.Course   { return f.Fault }
func renewed(f trial.Figures) *trial.Keeping { return f.Alive }

func half(l *trial.Latency) *float64 {
	if l == nil {
		return nil
	}
	return &l.P50
}

func p99(l *trial.Latency) *float64 {
	if l == nil {
		return nil
	}
	return &l.P99
}

func whole64(n int) *float64 {
	v := float64(n)
	return &v
}

// quotient is one figure by another; nil if there is none.
func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	q := *a / *b
	return &q
}
