package opinion

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// world makes small records: leases of a few clients on one or two keys, one
// after the other, with mistakes. sloppy is how often one of a thousand things
// goes wrong. No lease is held for no time, unless over says so.
type world struct {
	*rand.Rand
	sloppy int
	over   bool // some leases are over before they are told
}

func (w world) slips() bool { return w.IntN(1000) < w.sloppy }

// upTo is a time from 0 to n.
func (w world) upTo(n int) time.Duration { return time.Duration(w.IntN(n + 1)) }

func (w world) holds() (holds []hold) {
	free := map[string]time.Duration{"a": 10, "b": 10} // when the key is
	last := map[string]fence.Token{"a": 1, "b": 1}
	for i := range 1 + w.IntN(7) {
		h := hold{client: w.IntN(3), lease: i + 1, key: string(rune('a' + w.IntN(5)/4))}
		h.got = free[h.key] + w.upTo(3)
		if w.slips() {
			h.got -= min(h.got-1, w.upTo(8))
		}
		h.called = h.got - min(h.got-1, w.upTo(12))
		if w.IntN(10) > 0 {
			h.fence = last[h.key] + 1 + fence.Token(w.IntN(2))
			if w.slips() {
				h.fence -= min(h.fence-1, fence.Token(w.IntN(4)))
			}
			last[h.key] = max(last[h.key], h.fence)
		}
		h.until = h.got + 1 + w.upTo(12)
		end := h.until
		if w.over && w.IntN(4) == 0 {
			h.until, end = h.got-min(h.got-1, w.upTo(5)), h.got
		}
		if w.IntN(4) == 0 && h.until > h.got {
			h.extended = h.until + w.upTo(5)
			end = h.extended
		}
		if w.IntN(3) > 0 {
			h.release = h.got + 1 + w.upTo(8)
			end = min(end, h.release)
			if w.IntN(5) > 0 {
				h.freed = h.release + w.upTo(6)
			}
		}
		if w.IntN(6) == 0 {
			h.lost = h.got + 1 + w.upTo(8)
			end = min(end, h.lost)
		}
		free[h.key] = max(free[h.key], end)
		holds = append(holds, h)
	}
	return holds
}

// record makes events of the holds, adds acquires that came to nothing, and mixes
// them all.
func (w world) record(holds []hold) []history.Event {
	events := record(holds...)
	for i := range w.IntN(3) {
		called := 1 + w.upTo(30)
		events = append(events, failed(5, i+1, called, called+w.upTo(9), []history.Outcome{history.Fail, history.Unknown}[w.IntN(2)])...)
	}
	w.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

func TestJudgesAgreeOnSmallRecords(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "picture.html")
	illegal := func(ask func([]history.Event, string) error, events []history.Event) bool {
		err := ask(events, picture)
		if err != nil && !errors.Is(err, ErrIllegal) {
			t.Fatal(err)
		}
		return err != nil
	}
	const seeds = 4000
	count := make(map[string]int)
	for seed := range uint64(seeds) {
		w := world{Rand: rand.New(rand.NewPCG(seed, 1)), sloppy: int(seed % 4 * 100), over: seed%8 < 2}
		holds := w.holds()
		events := w.record(holds)

		v := exactly(t, events, true)
		got, want := illegal(Fences, events), !v.Clean()
		if got != want {
			t.Errorf("seed %d: fences: illegal %v, history says %q, of\n%+v", seed, got, v.Faults(), holds)
		}
		v = exactly(t, events, false)
		got, want = illegal(Leases, events), !v.Clean()
		if got != want && !(w.over && want) {
			t.Errorf("seed %d: leases: illegal %v, history says %q, of\n%+v", seed, got, v.Faults(), holds)
		}
		for i := range holds {
			holds[i].fence = 0
		}
		if got, want := illegal(Leases, w.record(holds)), len(v.Overlaps) > 0; got != want {
			t.Errorf("seed %d: leases without fences: illegal %v, history says %q, of\n%+v", seed, got, v.Faults(), holds)
		}

		if v.Clean() {
			count["clean"]++
		}
		if len(v.Overlaps) > 0 {
			count["overlap"]++
		}
		for _, m := range v.Misordered {
			count[fmt.Sprint("rule ", m.Rule)]++
		}
		if t.Failed() {
			return
		}
	}
	for what, least := range map[string]int{
		"clean": seeds / 5, "overlap": seeds / 10,
		"rule 0": seeds / 50, "rule 1": seeds / 100, "rule 2": seeds / 50,
	} {
		if count[what] < least {
			t.Errorf("too few records of one kind for an opinion: %v", count)
			break
		}
	}
}

// Many who wait for one key at the same time are what a search finds hard.
func TestContendedRecordIsDecided(t *testing.T) {
	var holds []hold
	const clients = 8
	for i := range 400 {
		h := hold{client: i % clients, lease: 1 + i, got: time.Duration(2000 + 100*i), fence: fence.Token(1 + i)}
		h.called, h.until, h.release, h.freed = h.got-100*(clients-1)-time.Duration(37*i%100), h.got+10_000, h.got+90, h.got+150
		holds = append(holds, h)
	}
	if events := record(holds...); !both(t, events, false) || !both(t, events, true) {
		t.Error("good: it is called illegal")
	}
	holds[200].fence = holds[150].fence
	if events := record(holds...); both(t, events, false) || both(t, events, true) {
		t.Error("bad: it is called legal")
	}
}

func TestBarsOfOneRowDoNotTouch(t *testing.T) {
	for seed := range uint64(300) {
		w := world{Rand: rand.New(rand.NewPCG(seed, 3)), sloppy: 500}
		all := read(w.record(w.holds()))
		operations, open := leases.operations(all), annotations(all)
		clients := make([]int, len(operations))
		for i, o := range operations {
			clients[i] = o.ClientId
		}
		seat(operations, open)
		type bar struct{ row, client, from, to int }
		var bars []bar
		for i, o := range operations {
			bars = append(bars, bar{o.ClientId, clients[i], int(o.Call), int(o.Return)})
		}
		for _, a := range open {
			bars = append(bars, bar{a.ClientId, 5, int(a.Start), int(a.End)})
		}
		for i, a := range bars {
			for _, b := range bars[:i] {
				if a.row == b.row && (a.client != b.client || a.from <= b.to && b.from <= a.to) {
					t.Errorf("seed %d: %+v and %+v", seed, a, b)
				}
				if a.client < b.client && a.row > b.row {
					t.Errorf("seed %d: clients are out of order: %+v and %+v", seed, a, b)
				}
			}
			if a.row < 0 || a.row >= len(bars) {
				t.Errorf("seed %d: row %d", seed, a.row)
			}
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("leases=%d", n), func(b *testing.B) {
			var holds []hold
			for i := range n {
				got := time.Duration(2000 + 100*i)
				holds = append(holds, hold{client: i % 8, lease: 1 + i, called: got - 700, got: got, until: got + 5000, release: got + 90, freed: got + 95, fence: fence.Token(1 + i)})
			}
			all := read(record(holds...))
			for b.Loop() {
				if porcupine.CheckOperationsTimeout(leases.Model, leases.operations(all), 0) != porcupine.Ok {
					b.Fatal("illegal")
				}
			}
		})
	}
}
