package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("sim.seeds", 300, "how many seeds to run")
	verbose = flag.Bool("sim.log", false, "print what happens in a schedule that fails")
	start   = flag.Uint64("sim.start", 1, "the first seed")
)

func TestSwarm(t *testing.T) {
	began := time.Now()
	var virtual time.Duration
	faults := map[string]int{}
	grants, events := 0, 0
	traces := map[uint64]bool{}
	for seed := *start; seed < *start+uint64(*seeds); seed++ {
		p := Draw(seed)
		r := Run(t, p)
		virtual += r.Time
		grants += r.Grants
		events += r.Events
		traces[r.Trace] = true
		for k, n := range r.Faults {
			faults[k] += n
		}
		if len(r.Violations) > 0 {
			p.Verbose = true
			r = Run(t, p)
			if *verbose {
				for _, s := range r.Log {
					fmt.Println(s)
				}
			}
			t.Errorf("seed %d: %v\n%+v", seed, r.Violations, p)
		}
	}
	took := time.Since(began)
	t.Logf("%d schedules, %v simulated, %d events, %d grants, %d traces, %v each, %v", *seeds, virtual, events, grants, len(traces), took/time.Duration(*seeds), faults)
}

func TestSameSeedSameTrace(t *testing.T) {
	for seed := *start; seed < *start+uint64(*seeds); seed++ {
		a, b := Run(t, Draw(seed)), Run(t, Draw(seed))
		if a.Trace != b.Trace {
			t.Errorf("seed %d: %x, then %x", seed, a.Trace, b.Trace)
		}
	}
}
