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

const ms = time.Millisecond

// hold is one that was released while it was valid for long.
func hold(holder int, key string, from, to time.Duration) Hold {
	return Hold{Key: key, Holder: holder, Acquired: from, Released: to, Until: from + time.Hour}
}

func TestBadHistoriesAreFound(t *testing.T) {
	for _, test := range []struct {
		name  string
		holds []Hold
		pairs [][2]int // first and second, by holder
	}{
		{"one inside another", []Hold{
			hold(1, "k", 1*ms, 9*ms), hold(2, "k", 3*ms, 4*ms),
		}, [][2]int{{1, 2}}},
		{"one runs into the next", []Hold{
			hold(1, "k", 1*ms, 4*ms), hold(2, "k", 3*ms, 9*ms),
		}, [][2]int{{1, 2}}},
		{"by one nanosecond", []Hold{
			hold(1, "k", 1*ms, 3*ms+1), hold(2, "k", 3*ms, 9*ms),
		}, [][2]int{{1, 2}}},
		{"both from the same moment", []Hold{
			hold(1, "k", 1*ms, 2*ms), hold(2, "k", 1*ms, 3*ms),
		}, [][2]int{{2, 1}}},
		{"twice the same", []Hold{
			hold(1, "k", 1*ms, 2*ms), hold(2, "k", 1*ms, 2*ms),
		}, [][2]int{{1, 2}}},
		{"an instant, where another begins", []Hold{
			hold(1, "k", 1*ms, 1*ms), hold(2, "k", 1*ms, 2*ms),
		}, [][2]int{{2, 1}}},
		{"an instant, inside another", []Hold{
			hold(1, "k", 2*ms, 2*ms), hold(2, "k", 1*ms, 3*ms),
		}, [][2]int{{2, 1}}},
		{"recorded in the wrong order", []Hold{
			hold(2, "k", 3*ms, 9*ms), hold(1, "k", 1*ms, 4*ms),
		}, [][2]int{{1, 2}}},
		{"not with the one just before, but with an earlier and longer one", []Hold{
			hold(1, "k", 1*ms, 99*ms), hold(2, "k", 2*ms, 3*ms), hold(3, "k", 50*ms, 51*ms),
		}, [][2]int{{1, 2}, {1, 3}}},
		{"the same holder twice", []Hold{
			hold(1, "k", 1*ms, 5*ms), hold(1, "k", 2*ms, 3*ms),
		}, [][2]int{{1, 1}}},
		{"one of many keys", []Hold{
			hold(1, "a", 1*ms, 2*ms), hold(2, "b", 1*ms, 5*ms), hold(3, "a", 2*ms, 3*ms),
			hold(4, "b", 4*ms, 5*ms), hold(5, "c", 1*ms, 9*ms),
		}, [][2]int{{2, 4}}},
		{"each of two keys", []Hold{
			hold(1, "a", 1*ms, 3*ms), hold(2, "a", 2*ms, 3*ms), hold(3, "b", 1*ms, 3*ms), hold(4, "b", 2*ms, 3*ms),
		}, [][2]int{{1, 2}, {3, 4}}},
		{"never released, without an end of validity", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms}, hold(2, "k", 1000*ms, 1001*ms),
		}, [][2]int{{1, 2}}},
		{"never released, still valid", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms}, hold(2, "k", 10*ms, 12*ms),
		}, [][2]int{{1, 2}}},
		{"released after the next one got it, still valid", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms, Released: 9 * ms}, hold(2, "k", 8*ms, 9*ms),
		}, [][2]int{{1, 2}}},
		{"told lost after the next one got it, still valid", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms, Lost: 9 * ms}, hold(2, "k", 8*ms, 9*ms),
		}, [][2]int{{1, 2}}},
		{"the empty key is a key", []Hold{
			hold(1, "", 1*ms, 3*ms), hold(2, "", 2*ms, 3*ms),
		}, [][2]int{{1, 2}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Run{Holds: test.holds}.Judge()
			var pairs [][2]int
			for _, o := range v.Overlaps {
				pairs = append(pairs, [2]int{o.First.Holder, o.Second.Holder})
			}
			if !slices.Equal(pairs, test.pairs) {
				t.Errorf("pairs %v, want %v", pairs, test.pairs)
			}
			if v.Clean() || len(v.Faults()) == 0 {
				t.Error("the run is called clean")
			}
		})
	}
}

func TestGoodHistoriesAreClean(t *testing.T) {
	for _, test := range []struct {
		name  string
		holds []Hold
		keys  int
	}{
		{"nothing happened", nil, 0},
		{"one after the other", []Hold{hold(1, "k", 1*ms, 2*ms), hold(2, "k", 3*ms, 4*ms)}, 1},
		{"one from the moment in which the other was released", []Hold{
			hold(2, "k", 2*ms, 3*ms), hold(1, "k", 1*ms, 2*ms),
		}, 1},
		{"different keys at the same time", []Hold{hold(1, "a", 1*ms, 9*ms), hold(2, "b", 1*ms, 9*ms)}, 2},
		{"released late, but validity was over", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms, Released: 20 * ms}, hold(2, "k", 11*ms, 12*ms),
		}, 1},
		{"released late, but told lost before", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms, Lost: 5 * ms, Released: 20 * ms}, hold(2, "k", 5*ms, 12*ms),
		}, 1},
		{"valid no longer when acquire returned", []Hold{
			hold(1, "k", 1*ms, 9*ms), {Key: "k", Holder: 2, Acquired: 5 * ms, Until: 4 * ms, Released: 6 * ms},
		}, 1},
		{"valid until acquire returned", []Hold{
			hold(1, "k", 1*ms, 9*ms), {Key: "k", Holder: 2, Acquired: 5 * ms, Until: 5 * ms, Released: 6 * ms},
		}, 1},
		{"told lost, but released before", []Hold{
			{Key: "k", Holder: 1, Acquired: 1 * ms, Until: 11 * ms, Released: 4 * ms, Lost: 8 * ms}, hold(2, "k", 5*ms, 12*ms),
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Run{Holds: test.holds}.Judge()
			if !v.Clean() || len(v.Faults()) != 0 {
				t.Errorf("%v", v.Faults())
			}
			if v.Holds != len(test.holds) || v.Keys != test.keys {
				t.Errorf("judged %d holds of %d keys", v.Holds, v.Keys)
			}
		})
	}
}

func TestImpossibleHoldsAreNotClean(t *testing.T) {
	for _, test := range []struct {
		hold Hold
		why  string
	}{
		{Hold{Key: "k", Acquired: 5 * ms, Released: 4 * ms, Until: 9 * ms}, "ended before it began"},
		{Hold{Key: "k", Acquired: 5 * ms, Lost: 4 * ms, Released: 6 * ms, Until: 9 * ms}, "ended before it began"},
		{Hold{Key: "k", Called: 6 * ms, Acquired: 5 * ms, Until: 9 * ms}, "acquired before that was asked for"},
		{Hold{Key: "k", Fence: -1, Acquired: 5 * ms, Until: 9 * ms}, "its fence -1 is none"},
		{Hold{Key: "k", Fence: 1 << 53, Acquired: 5 * ms, Until: 9 * ms}, "its fence 9007199254740992 is none"},
	} {
		v := Run{Holds: []Hold{test.hold}, TimingBroken: true}.Judge()
		if v.Clean() || len(v.Broken) != 1 || v.Holds != 1 || v.Keys != 1 || !strings.Contains(strings.Join(v.Faults(), "\n"), test.why) {
			t.Errorf("%v: %v", test.hold, v.Faults())
		}
	}
}

func TestLeftKeysAreNotClean(t *testing.T) {
	v := Run{Holds: []Hold{hold(1, "k", 1*ms, 2*ms)}, Left: []Left{{Node: "n2", Key: "k"}}}.Judge()
	if v.Clean() {
		t.Error("the run is called clean")
	}
	if got, want := strings.Join(v.Faults(), "\n"), `key "k" was left on n2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerdictSpeaksOfBothHolders(t *testing.T) {
	v := Run{Holds: []Hold{
		{Key: "stock:1", Holder: 3, Acquired: 1 * ms, Until: 20 * ms, Released: 4 * ms}, hold(7, "stock:1", 3*ms, 5*ms),
		{Key: "stock:2", Holder: 4, Acquired: 2 * ms}, hold(5, "stock:2", 3*ms, 5*ms),
	}}.Judge()
	want := `two holders at once: holder 3 had "stock:1" from 1ms to 4ms (released), and holder 7 got it at 3ms, 1ms too early
two holders at once: holder 4 had "stock:2" from 2ms on and never let go, and holder 5 got it at 3ms`
	if got := strings.Join(v.Faults(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestVerdictOfManyFaultsStaysShort(t *testing.T) {
	var r Run
	for i := range 1000 {
		r.Holds = append(r.Holds, hold(i, "k", 1*ms, 2*ms))
		r.Left = append(r.Left, Left{Node: "n", Key: fmt.Sprint(i)})
		r.Log = append(r.Log, Entry{Key: "k", Fence: 1, Element: fmt.Sprint(i)})
	}
	for i := range r.Holds {
		r.Holds[i].Fence = 1
	}
	got := strings.Join(r.Judge().Faults(), "\n")
	if lines := strings.Count(got, "\n") + 1; lines != 4*(spelledOut+1) {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	for _, want := range []string{"and 994 more overlaps", "and 994 more fences out of order", "and 995 more keys left", "and 995 more faults of the store"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// The sweep finds exactly those holds that a look at all pairs finds.
func TestSweepAgreesWithAllPairs(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var holds []Hold
		for i := range r.IntN(12) {
			h := Hold{Key: string(rune('a' + r.IntN(2))), Holder: i, Acquired: time.Duration(1 + r.IntN(20))}
			for _, at := range []*time.Duration{&h.Released, &h.Lost} {
				if r.IntN(3) > 0 {
					*at = h.Acquired + time.Duration(r.IntN(6))
				}
			}
			if r.IntN(3) > 0 {
				h.Until = h.Acquired + time.Duration(r.IntN(8)-2)
			}
			holds = append(holds, h)
		}
		var want []int
		for i, h := range holds {
			if !h.empty() && slices.ContainsFunc(holds, func(o Hold) bool { return began(h, i, o, slices.Index(holds, o)) }) {
				want = append(want, h.Holder)
			}
		}
		var got []int
		for _, o := range (Run{Holds: slices.Clone(holds)}).Judge().Overlaps {
			if end, _ := o.First.end(); o.First.Key != o.Second.Key || o.First.Acquired > o.Second.Acquired || end <= o.Second.Acquired {
				t.Errorf("seed %d: no overlap: %v", seed, o)
			}
			got = append(got, o.Second.Holder)
		}
		// Which of those that began together comes second is the sweep's choice.
		if len(got) != len(want) {
			t.Errorf("seed %d: %d overlaps, want %d, in\n%v", seed, len(got), len(want), holds)
		}
	}
}

// began says whether h began while o lasted; of two that began together, the
// longer is taken to have been first, and of two alike, the first recorded.
func began(h Hold, i int, o Hold, j int) bool {
	if i == j || h.Key != o.Key || o.empty() {
		return false
	}
	hEnd, _ := h.end()
	oEnd, _ := o.end()
	if h.Acquired == o.Acquired && (hEnd > oEnd || hEnd == oEnd && i < j) {
		return false
	}
	return o.Acquired <= h.Acquired && h.Acquired < oEnd
}

// BenchmarkJudge shows by ns/hold, which hardly grows, that the time is n log n.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		for _, keys := range []int{1, 64} {
			b.Run(fmt.Sprintf("holds=%d/keys=%d", n, keys), func(b *testing.B) {
				holds := make([]Hold, n)
				for i := range holds {
					from := time.Duration(2+i/keys) * ms
					holds[i] = hold(i, fmt.Sprintf("key:%d", i%keys), from, from+ms)
					holds[i].Called, holds[i].Fence = from-2*ms, fence.Token(1+i)
				}
				rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
				scratch := make([]Hold, n)
				b.ReportAllocs()
				for b.Loop() {
					copy(scratch, holds) // Judge sorts
					if v := (Run{Holds: scratch}).Judge(); !v.Clean() || v.Fenced != n {
						b.Fatal(v.Faults())
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/hold")
			})
		}
	}
}
