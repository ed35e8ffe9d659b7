package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// fenced is a hold that was asked for at one moment, got at the next and released
// at the last.
func fenced(holder int, f fence.Token, called, from, to time.Duration) Hold {
	h := hold(holder, "k", from, to)
	h.Called, h.Fence = called, f
	return h
}

// disorder is a Misorder by the numbers of its holders.
type disorder struct {
	rule          Rule
	first, second int
}

func disorders(v Verdict) (found []disorder) {
	for _, m := range v.Misordered {
		found = append(found, disorder{m.Rule, m.First.Holder, m.Second.Holder})
	}
	return found
}

func TestBadFencesAreFound(t *testing.T) {
	other := func(h Hold) Hold { h.Key = "other"; return h }
	for _, test := range []struct {
		name   string
		holds  []Hold
		broken bool // timing
		want   []disorder
	}{
		{"the same twice, one after the other", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), fenced(2, 5, 4*ms, 5*ms, 6*ms),
		}, false, []disorder{{Unique, 1, 2}}},
		{"the same twice, asked for at the same time", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), fenced(2, 5, 1*ms, 5*ms, 6*ms),
		}, false, []disorder{{Unique, 1, 2}}},
		{"the same twice while timing is broken", []Hold{
			fenced(1, 5, 1*ms, 3*ms, 9*ms), fenced(2, 5, 2*ms, 4*ms, 9*ms),
		}, true, []disorder{{Unique, 1, 2}}},
		{"the same three times", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), fenced(2, 5, 1*ms, 5*ms, 6*ms), fenced(3, 5, 1*ms, 7*ms, 8*ms),
		}, false, []disorder{{Unique, 1, 2}, {Unique, 2, 3}}},
		{"the same twice, with others between", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), fenced(2, 6, 1*ms, 5*ms, 6*ms), fenced(3, 7, 1*ms, 7*ms, 8*ms), fenced(4, 5, 1*ms, 9*ms, 10*ms),
		}, false, []disorder{{Unique, 1, 4}, {Successive, 3, 4}}},
		{"smaller for one who asked afterwards", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 3*ms), fenced(2, 5, 4*ms, 5*ms, 6*ms),
		}, false, []disorder{{Ordered, 1, 2}}},
		{"smaller for one who asked afterwards, while timing is broken and the first still holds", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 30*ms), fenced(2, 5, 4*ms, 5*ms, 6*ms),
		}, true, []disorder{{Ordered, 1, 2}}},
		{"smaller for one who asked a nanosecond after the first had been got", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 9*ms), fenced(2, 5, 2*ms+1, 5*ms, 6*ms),
		}, true, []disorder{{Ordered, 1, 2}}},
		{"smaller than that of the last but one", []Hold{
			fenced(1, 7, 1*ms, 2*ms, 3*ms), fenced(2, 5, 1*ms, 4*ms, 5*ms), fenced(3, 6, 6*ms, 7*ms, 8*ms),
		}, false, []disorder{{Ordered, 1, 3}, {Successive, 1, 2}}},
		{"smaller, recorded in the wrong order", []Hold{
			fenced(2, 5, 4*ms, 5*ms, 6*ms), fenced(1, 6, 1*ms, 2*ms, 3*ms),
		}, false, []disorder{{Ordered, 1, 2}}},
		{"smaller for one who waited while the other held", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 3*ms), fenced(2, 5, 1*ms, 5*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"smaller in the moment in which the other let go", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 5*ms), fenced(2, 5, 1*ms, 5*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"smaller after one that was held for no time", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 2*ms), fenced(2, 5, 1*ms, 2*ms+1, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"smaller after one whose validity was over", []Hold{
			{Key: "k", Holder: 1, Fence: 6, Called: 1 * ms, Acquired: 2 * ms, Until: 4 * ms}, fenced(2, 5, 1*ms, 4*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"smaller after one that was told lost", []Hold{
			{Key: "k", Holder: 1, Fence: 6, Called: 1 * ms, Acquired: 2 * ms, Until: 90 * ms, Lost: 4 * ms}, fenced(2, 5, 1*ms, 4*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"smaller after one that was valid no longer when acquire returned", []Hold{
			{Key: "k", Holder: 1, Fence: 6, Called: 1 * ms, Acquired: 3 * ms, Until: 2 * ms}, fenced(2, 5, 1*ms, 4*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 2}}},
		{"on one of two keys", []Hold{
			other(fenced(1, 6, 1*ms, 2*ms, 3*ms)), fenced(2, 9, 1*ms, 2*ms, 3*ms),
			other(fenced(3, 5, 1*ms, 5*ms, 6*ms)), fenced(4, 10, 1*ms, 5*ms, 6*ms),
		}, false, []disorder{{Successive, 1, 3}}},
		{"past one that had no fence", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 3*ms), fenced(2, 0, 1*ms, 4*ms, 5*ms), fenced(3, 5, 1*ms, 6*ms, 7*ms),
		}, false, []disorder{{Successive, 1, 3}}},
		{"down and down", []Hold{
			fenced(1, 9, 1*ms, 2*ms, 3*ms), fenced(2, 8, 1*ms, 4*ms, 5*ms), fenced(3, 7, 1*ms, 6*ms, 7*ms),
		}, false, []disorder{{Successive, 1, 2}, {Successive, 1, 3}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Run{Holds: test.holds, TimingBroken: test.broken}.Judge()
			if got := disorders(v); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
			if v.Clean() || len(v.Faults()) == 0 {
				t.Error("the run is called clean")
			}
		})
	}
}

func TestGoodFencesAreClean(t *testing.T) {
	for _, test := range []struct {
		name   string
		holds  []Hold
		broken bool
		fenced int
	}{
		{"rising", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), fenced(2, 6, 4*ms, 5*ms, 6*ms), fenced(3, 1<<53-1, 7*ms, 8*ms, 9*ms),
		}, false, 3},
		{"the same on two keys", []Hold{
			fenced(1, 5, 1*ms, 2*ms, 3*ms), {Key: "other", Holder: 2, Fence: 5, Called: 4 * ms, Acquired: 5 * ms, Released: 6 * ms},
		}, false, 2},
		{"none at all", []Hold{fenced(1, 0, 1*ms, 2*ms, 3*ms), fenced(2, 0, 4*ms, 5*ms, 6*ms)}, false, 0},
		{"smaller for one who asked in the moment in which the other got it, timing broken", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 9*ms), fenced(2, 5, 2*ms, 5*ms, 6*ms),
		}, true, 2},
		{"smaller for one who waited, timing broken", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 3*ms), fenced(2, 5, 1*ms, 5*ms, 6*ms),
		}, true, 2},
		{"smaller for one who was paused until validity was over", []Hold{
			fenced(1, 6, 3*ms, 5*ms, 6*ms), {Key: "k", Holder: 2, Fence: 5, Called: 1 * ms, Acquired: 9 * ms, Until: 2 * ms},
		}, false, 2},
		{"smaller for one of whom it is not known when it asked, timing broken", []Hold{
			fenced(1, 6, 1*ms, 2*ms, 3*ms), fenced(2, 5, 0, 5*ms, 6*ms),
		}, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Run{Holds: test.holds, TimingBroken: test.broken}.Judge()
			if !v.Clean() || len(v.Faults()) != 0 {
				t.Errorf("%v", v.Faults())
			}
			if v.Fenced != test.fenced {
				t.Errorf("%d fences were judged, want %d", v.Fenced, test.fenced)
			}
		})
	}
}

// Where timing is broken holds may overlap. They are told all the same, so that
// a test can show that it did break something.
func TestOverlapsAreNoFaultWhileTimingIsBroken(t *testing.T) {
	r := Run{Holds: []Hold{fenced(1, 5, 1*ms, 2*ms, 9*ms), fenced(2, 6, 1*ms, 3*ms, 9*ms)}}
	if v := r.Judge(); v.Clean() || len(v.Overlaps) != 1 {
		t.Errorf("timing holds: %d overlaps, faults %q", len(v.Overlaps), v.Faults())
	}
	r.TimingBroken = true
	if v := r.Judge(); !v.Clean() || len(v.Faults()) != 0 || len(v.Overlaps) != 1 {
		t.Errorf("timing broken: %d overlaps, faults %q", len(v.Overlaps), v.Faults())
	}
}

func TestVerdictSpeaksOfBothFences(t *testing.T) {
	v := Run{Holds: []Hold{
		fenced(1, 7, 1*ms, 2*ms, 3*ms), fenced(2, 7, 1*ms, 4*ms, 5*ms),
		fenced(3, 6, 1*ms, 6*ms, 7*ms), fenced(4, 5, 8*ms, 9*ms, 10*ms),
	}}.Judge()
	want := `one fence for two leases: 7 for "k", which holder 1 got at 2ms and holder 2 at 4ms
a fence went back: holder 1 got "k" with 7 at 2ms, and holder 4, who asked at 8ms, got 5 at 9ms
a fence went back: holder 1 had "k" from 2ms to 3ms (released) with 7, and holder 3 got 6 at 6ms`
	if got := strings.Join(v.Faults(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The running maximum finds exactly those holds that a look at all pairs finds.
func TestOrderAgreesWithAllPairs(t *testing.T) {
	faults := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var holds []Hold
		for i := range r.IntN(10) {
			from := time.Duration(5 + r.IntN(20))
			h := fenced(i, fence.Token(r.IntN(12)), from-time.Duration(r.IntN(5)), from, from+time.Duration(r.IntN(6)))
			h.Key = string(rune('a' + r.IntN(2)))
			h.Until = from + time.Duration(r.IntN(8)-2)
			holds = append(holds, h)
		}
		timingHolds := r.IntN(2) == 0
		want := make(map[disorder]bool) // by rule and second
		for i, b := range holds {
			ordered, successive := false, false
			for j, a := range holds {
				if i == j || a.Key != b.Key || a.Fence == 0 || b.Fence == 0 || a.Fence < b.Fence {
					continue
				}
				end, _ := a.end()
				switch {
				case a.Fence == b.Fence:
					continue // see below: which is the second is a choice
				case a.Acquired < b.Called:
					ordered = true
				case timingHolds && !b.empty() && a.Acquired < b.Acquired && end <= b.Acquired:
					successive = true
				}
			}
			if ordered {
				want[disorder{Ordered, 0, i}] = true
			} else if successive {
				want[disorder{Successive, 0, i}] = true
			}
		}
		repeated := 0
		fences := make(map[string]bool)
		for _, h := range holds {
			name := fmt.Sprint(h.Key, h.Fence)
			if h.Fence != 0 && fences[name] {
				repeated++
			}
			fences[name] = true
		}
		v := Run{Holds: slices.Clone(holds), TimingBroken: !timingHolds}.Judge()
		got := make(map[disorder]bool)
		unique := 0
		for _, m := range v.Misordered {
			if m.Rule == Unique {
				unique++
				continue
			}
			if m.First.Key != m.Second.Key || m.First.Fence <= m.Second.Fence {
				t.Errorf("seed %d: no disorder: %v", seed, m)
			}
			got[disorder{m.Rule, 0, m.Second.Holder}] = true
		}
		if unique != repeated || len(got)+unique != len(v.Misordered) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("seed %d: %d repeated and %v, want %d and %v, in\n%v", seed, unique, got, repeated, want, holds)
		}
		faults += len(v.Misordered)
	}
	if faults < 1000 {
		t.Errorf("only %d faults: the histories are too good", faults)
	}
}
