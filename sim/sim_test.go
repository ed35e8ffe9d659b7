package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

var (
	seeds   = flag.Int("sim.seeds", 3000/slower, "how many seeds the swarm runs")
	start   = flag.Uint64("sim.start", 1, "its first seed")
	shorter = flag.Bool("sim.short", true, "look for what of a failing schedule is enough")
	verbose = flag.Bool("sim.log", false, "print all that happens in a schedule that fails")
)

// TestSwarmHoldsNoKeyTwice runs schedules until one violates something. It says so
// with the command that runs that one again, and with what of it is enough.
func TestSwarmHoldsNoKeyTwice(t *testing.T) {
	var sum summary
	said := time.Now()
	for seed := *start; seed < *start+uint64(*seeds); seed++ {
		r := Run(t, Draw(seed))
		sum.add(r)
		if len(r.Violations) > 0 {
			report(t, seed, r)
			break
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			t.Log(sum.String())
		}
	}
	t.Log(sum.String())
	if sum.schedules >= 1000 {
		for name := range kinds {
			if sum.faults[name] == 0 {
				t.Errorf("no fault of kind %s in %d schedules", name, sum.schedules)
			}
		}
		if sum.beside == 0 {
			t.Errorf("no flight was beside another in %d schedules", sum.schedules)
		}
	}
}

// report says what a seed violates.
func report(t *testing.T, seed uint64, r Result) {
	t.Helper()
	t.Errorf("seed %d:\n\t%s", seed, strings.Join(r.Violations, "\n\t"))
	t.Logf("again: go test ./sim -run TestSwarm -sim.seeds 1 -sim.start %d -sim.log", seed)
	if !*shorter {
		return
	}
	short := Shorten(t, Draw(seed))
	short.Verbose = true
	r = Run(t, short)
	t.Logf("this is enough (go test ./sim -run TestScript -sim.script FILE):\n%s\twhich violates\n\t%s", short, strings.Join(r.Violations, "\n\t"))
	if *verbose {
		for _, s := range r.Log {
			fmt.Println(s)
		}
	}
}

// summary is what a run of many schedules amounts to.
type summary struct {
	schedules, grants, events, beside int

	ops    [redlock.OpRelease + 1]int
	time   time.Duration
	faults map[string]int
	traces map[uint64]struct{}
	began  time.Time
}

func (s *summary) add(r Result) {
	if s.traces == nil {
		s.traces, s.faults, s.began = map[uint64]struct{}{}, map[string]int{}, time.Now()
	}
	s.schedules++
	s.grants += r.Grants
	s.events += r.Events
	s.beside += r.Beside
	s.time += r.Time
	for kind, n := range r.Ops {
		s.ops[kind] += n
	}
	s.traces[r.Trace] = struct{}{}
	for kind, n := range r.Faults {
		s.faults[kind] += n
	}
}

func (s *summary) String() string {
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		faults = append(faults, fmt.Sprint(kind, " ", s.faults[kind]))
	}
	var ops []string
	for kind, n := range s.ops {
		ops = append(ops, fmt.Sprint(redlock.OpKind(kind), " ", n))
	}
	return fmt.Sprintf("%d schedules, %.1f simulated hours, %d events, %d grants, %d flights beside others, operations: %s, %d distinct traces, %.0f schedules a minute; faults: %s",
		s.schedules, s.time.Hours(), s.events, s.grants, s.beside, strings.Join(ops, ", "), len(s.traces),
		float64(s.schedules)/time.Since(s.began).Minutes(), strings.Join(faults, ", "))
}

// TestSameSeedSameTrace: what a seed shows once it shows again (I11).
func TestSameSeedSameTrace(t *testing.T) {
	n := uint64(max(1, min(*seeds, 800/slower)))
	for seed := *start; seed < *start+n; seed++ {
		a, b := Run(t, Draw(seed)), Run(t, Draw(seed))
		if a.Trace != b.Trace {
			t.Errorf("seed %d: %x, then %x", seed, a.Trace, b.Trace)
		}
	}
}

// TestMain gives the driver and the goroutines that it waits for one processor:
// they take turns anyway. The garbage of a Locker is larger than what it leaves in
// its pool until the collection after next, but not by so much that these might be
// rarer still: with 400 the heap would grow without end.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(150)
	os.Exit(m.Run())
}
