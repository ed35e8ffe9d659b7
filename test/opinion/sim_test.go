package opinion

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/sim"
)

var (
	seeds = flag.Int("opinion.seeds", 400, "how many schedules of the simulation are judged")
	first = flag.Uint64("opinion.start", 1, "the seed of the first")
)

// TestMain gives a schedule's driver and its goroutines one processor: they take
// turns anyway.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// schedule is that of a seed, and what became of it. What its own judge says of it
// is a matter of its own tests.
func schedule(t *testing.T, seed uint64) (sim.Plan, sim.Result) {
	p := sim.Draw(seed)
	p.Recorded = true
	return p, sim.Run(t, p)
}

// verdicts are those of history and of the search, on fences alone or on leases.
func verdicts(t *testing.T, record []history.Event, accepted []history.Entry, fencesOnly bool, picture string) (history.Verdict, error) {
	t.Helper()
	run, err := history.Recorded(record)
	if err != nil {
		t.Fatal(err)
	}
	run.Log, run.TimingBroken = accepted, fencesOnly
	ask := Leases
	if fencesOnly {
		ask = Fences
	}
	err = ask(record, picture)
	if err != nil && !errors.Is(err, ErrIllegal) {
		t.Fatal(err)
	}
	return run.Judge(), err
}

// picture is where one is kept after the test: judges write it on a fault only.
func picture(seed uint64, of string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("quorumlock-opinion-%d-%s.html", seed, of))
}

func TestJudgesAgreeOnSimulatedSchedules(t *testing.T) {
	count := make(map[string]int)
	for seed := *first; seed < *first+uint64(*seeds) && !t.Failed(); seed++ {
		p, r := schedule(t, seed)
		for of, fencesOnly := range map[string]bool{"fences": true, "leases": false} {
			must := p.Keeping && (fencesOnly || p.Timely)
			where := picture(seed, of)
			if !must { // it may be bad, and then they agree on that
				where = filepath.Join(t.TempDir(), "picture.html")
			}
			v, err := verdicts(t, r.Record, r.Accepted, fencesOnly, where)
			switch {
			case must && (!v.Clean() || err != nil):
				t.Errorf("seed %d, %s: history says %q, the search says %v", seed, of, v.Faults(), err)
			case v.Clean() != (err == nil):
				t.Errorf("seed %d, %s: history says %q, the search says %v, of\n%+v", seed, of, v.Faults(), err, r.Record)
			case must:
				count[of]++
			case err != nil:
				count["bad"]++
			default:
				count["good all the same"]++
			}
			count["holds"] += v.Holds
			count["appended"] += v.Appended
		}
	}
	t.Log(count)
	if *seeds >= 400 && !t.Failed() && (count["leases"] < 200 || count["holds"] < 2000 || count["appended"] < 1000) {
		t.Errorf("too few of one kind for an opinion: %v", count)
	}
}

// A schedule is good; its record is made bad. Both judges find that, and the
// picture is there.
func TestSpoiledSchedulesAreFound(t *testing.T) {
	for name, spoil := range map[string]func(record []history.Event, a, b *history.Event) bool{
		// The leases change fences.
		"fences": func(_ []history.Event, a, b *history.Event) bool {
			a.Fence, b.Fence = b.Fence, a.Fence
			return a.Fence != 0
		},
		// The second is asked for and got while the first is held.
		"overlap": func(record []history.Event, a, b *history.Event) bool {
			for i := range record {
				if e := &record[i]; e.Op == history.OpAcquire && e.Client == b.Client && e.Lease == b.Lease {
					e.At = a.At
				}
			}
			b.At++
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := 0
			for seed := *first; seed < *first+120; seed++ {
				p, r := schedule(t, seed)
				if !p.Keeping || !p.Timely {
					continue
				}
				a, b := successive(r.Record)
				if b == nil || !spoil(r.Record, a, b) {
					continue
				}
				spoiled++
				picture := filepath.Join(t.TempDir(), "picture.html")
				v, err := verdicts(t, r.Record, nil, false, picture)
				if len(v.Overlaps)+len(v.Misordered) == 0 || err == nil {
					t.Fatalf("seed %d: history says %q, the search says %v, of\n%+v", seed, v.Faults(), err, r.Record)
				}
				if _, err := os.Stat(picture); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if spoiled < 20 {
				t.Errorf("only %d schedules were spoiled", spoiled)
			}
		})
	}
}

// successive are the returns of two acquires of one key, the second called when
// the first had been released, and that later than got.
func successive(record []history.Event) (a, b *history.Event) {
	for i := range record {
		released := record[i]
		if released.Op != history.OpRelease {
			continue
		}
		called := slices.IndexFunc(record, func(e history.Event) bool {
			return e.Op == history.OpAcquire && e.Outcome == "" && e.Key == released.Key && e.At > released.At
		})
		if called < 0 {
			continue
		}
		for j := range record {
			switch e := &record[j]; {
			case e.Op != history.OpAcquire || e.Outcome == "":
			case e.Client == released.Client && e.Lease == released.Lease:
				a = e
			case e.Client == record[called].Client && e.Lease == record[called].Lease:
				b = e
			}
		}
		if a.At+1 < released.At && a.At+1 < a.Until {
			return a, b
		}
	}
	return nil, nil
}
