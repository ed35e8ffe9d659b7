package opinion

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// hold is what a client records of one lease. Zero moments did not happen.
type hold struct {
	client, lease int
	called, got   time.Duration
	until         time.Duration
	fence         fence.Token
	extended      time.Duration // a second until, told between got and it
	lost          time.Duration
	release       time.Duration
	freed         time.Duration // release returned
	key           string
}

func (h hold) events() []history.Event {
	e := history.Event{Client: h.client, Lease: h.lease, Key: h.key}
	at := func(at time.Duration, op history.Op, o history.Outcome) history.Event {
		e := e
		e.At, e.Op, e.Outcome = at, op, o
		return e
	}
	got := at(h.got, history.OpAcquire, history.OK)
	got.Until, got.Fence = h.until, h.fence
	events := []history.Event{at(h.called, history.OpAcquire, ""), got}
	if h.extended != 0 {
		extended := at(h.got, history.OpExtend, history.OK)
		extended.Until = h.extended
		events = append(events, extended)
	}
	if h.lost != 0 {
		events = append(events, at(h.lost, history.OpLost, ""))
	}
	if h.release != 0 {
		events = append(events, at(h.release, history.OpRelease, ""))
	}
	if h.freed != 0 {
		events = append(events, at(h.freed, history.OpRelease, history.OK))
	}
	return events
}

// failed is an acquire that came to nothing, or to nobody knows what.
func failed(client, lease int, called, got time.Duration, o history.Outcome) []history.Event {
	return []history.Event{
		{Client: client, Lease: lease, Key: "k", At: called, Op: history.OpAcquire},
		{Client: client, Lease: lease, Key: "k", At: got, Op: history.OpAcquire, Outcome: o},
	}
}

func record(holds ...hold) (events []history.Event) {
	for _, h := range holds {
		if h.key == "" {
			h.key = "k"
		}
		if h.lease == 0 {
			h.lease = 1
		}
		events = append(events, h.events()...)
	}
	return events
}

// exactly is what history says of a record.
func exactly(t *testing.T, events []history.Event, timingBroken bool) history.Verdict {
	t.Helper()
	run, err := history.Recorded(events)
	if err != nil {
		t.Fatal(err)
	}
	run.TimingBroken = timingBroken
	return run.Judge()
}

// both asks the two judges and compares them. Of what they agree on it says
// whether it is legal.
func both(t *testing.T, events []history.Event, timingBroken bool) bool {
	t.Helper()
	v := exactly(t, events, timingBroken)
	ask := Leases
	if timingBroken {
		ask = Fences
	}
	err := ask(events, filepath.Join(t.TempDir(), "picture.html"))
	if err != nil && !errors.Is(err, ErrIllegal) {
		t.Fatal(err)
	}
	if v.Clean() != (err == nil) {
		t.Errorf("history says %q, the search says %v, of\n%+v", v.Faults(), err, events)
	}
	return err == nil
}

func TestBadRecordsAreFound(t *testing.T) {
	for _, test := range []struct {
		name         string
		timingBroken bool
		events       []history.Event
	}{
		{"two at once", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 9, freed: 10},
			hold{client: 2, called: 3, got: 4, until: 99, release: 5, freed: 6})},
		{"two at once by a nanosecond", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 5, freed: 10},
			hold{client: 2, called: 3, got: 4, until: 99, release: 8, freed: 9})},
		{"two from the same moment", false, record(
			hold{client: 1, called: 1, got: 3, until: 99, release: 5, freed: 10},
			hold{client: 2, called: 1, got: 3, until: 99, release: 6, freed: 9})},
		{"one vanished and was still valid", false, record(
			hold{client: 1, called: 1, got: 2, until: 9},
			hold{client: 2, called: 3, got: 8, until: 99, release: 10, freed: 11})},
		{"an extension was good for longer", false, record(
			hold{client: 1, called: 1, got: 2, until: 9, extended: 20},
			hold{client: 2, called: 3, got: 15, until: 99, release: 16, freed: 17})},
		{"told lost too late", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, lost: 9},
			hold{client: 2, called: 3, got: 8, until: 99, release: 16, freed: 17})},
		{"the same client twice", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 9, freed: 10},
			hold{client: 1, lease: 2, called: 3, got: 4, until: 99, release: 5, freed: 6})},
		{"neither ever ends", false, record(
			hold{client: 1, called: 1, got: 2, until: 99},
			hold{client: 2, called: 3, got: 4, until: 99})},
		{"on the second of two keys", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 9, freed: 10, key: "a"},
			hold{client: 2, called: 1, got: 2, until: 99, release: 9, freed: 10, key: "b"},
			hold{client: 3, called: 1, got: 5, until: 99, release: 7, freed: 8, key: "b"})},
		{"with an acquire of unknown outcome beside it", false, append(failed(3, 1, 1, 2, history.Unknown), record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 9, freed: 10},
			hold{client: 2, called: 3, got: 4, until: 99, release: 5, freed: 6})...)},
		{"a fence falls from one lease to the next, asked for before", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 10, fence: 6},
			hold{client: 2, called: 1, got: 4, until: 99, release: 5, freed: 6, fence: 5})},
		{"a fence falls and one without stands between", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 10, fence: 6},
			hold{client: 2, called: 1, got: 4, until: 99, release: 5, freed: 6},
			hold{client: 3, called: 1, got: 7, until: 99, release: 8, freed: 9, fence: 5})},
		{"a fence repeats", true, record(
			hold{client: 1, called: 1, got: 4, until: 99, fence: 5},
			hold{client: 2, called: 1, got: 4, until: 99, fence: 5})},
		{"a fence repeats after another", true, record(
			hold{client: 1, called: 1, got: 4, until: 99, fence: 5},
			hold{client: 2, called: 1, got: 4, until: 99, fence: 6},
			hold{client: 3, called: 5, got: 6, until: 99, fence: 5})},
		{"a fence falls for one who asked afterwards", true, record(
			hold{client: 1, called: 1, got: 2, until: 99, fence: 6},
			hold{client: 2, called: 3, got: 4, until: 99, fence: 5})},
		{"a fence falls and nobody holds any more", true, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 4, fence: 6},
			hold{client: 2, called: 5, got: 6, until: 99, fence: 5})},
		{"the fence of a lease that was over falls", true, record(
			hold{client: 1, called: 1, got: 2, until: 99, fence: 6},
			hold{client: 2, called: 5, got: 9, until: 8, fence: 5})},
	} {
		t.Run(test.name, func(t *testing.T) {
			if both(t, test.events, test.timingBroken) {
				t.Error("it is called legal")
			}
		})
	}
}

func TestGoodRecordsAreLegal(t *testing.T) {
	for _, test := range []struct {
		name         string
		timingBroken bool
		events       []history.Event
	}{
		{"nothing", false, nil},
		{"one after the other", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 4, fence: 5},
			hold{client: 2, called: 5, got: 6, until: 99, release: 7, freed: 8, fence: 6})},
		{"one while the release of the other is under way", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 10, fence: 5},
			hold{client: 2, called: 2, got: 4, until: 99, release: 7, freed: 8, fence: 6})},
		{"one after a release of unknown outcome", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, fence: 5},
			hold{client: 2, called: 2, got: 4, until: 99, release: 7, freed: 8, fence: 6})},
		{"one in the moment in which the other's validity ended", false, record(
			hold{client: 1, called: 1, got: 2, until: 9},
			hold{client: 2, called: 2, got: 9, until: 99, release: 10, freed: 11})},
		{"released long after the end", false, record(
			hold{client: 1, called: 1, got: 2, until: 9, release: 50, freed: 51},
			hold{client: 2, called: 2, got: 20, until: 99, release: 22, freed: 23})},
		{"told lost", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, lost: 5, release: 50, freed: 51},
			hold{client: 2, called: 2, got: 20, until: 99, release: 22, freed: 23})},
		{"acquires that failed or may have", false, append(append(failed(3, 1, 1, 2, history.Unknown), failed(4, 1, 1, 2, history.Fail)...), record(
			hold{client: 1, called: 1, got: 2, until: 99, release: 3, freed: 10},
			hold{client: 2, called: 3, got: 4, until: 99, release: 5, freed: 6})...)},
		{"a lease over before it was told", false, record(
			hold{client: 1, called: 1, got: 20, until: 9, fence: 5},
			hold{client: 2, called: 2, got: 10, until: 99, release: 30, freed: 31, fence: 6})},
		{"different keys", false, record(
			hold{client: 1, called: 1, got: 2, until: 99, key: "a", fence: 5},
			hold{client: 2, called: 1, got: 2, until: 99, key: "b", fence: 5})},
		{"fences in another order than returns, timing broken", true, record(
			hold{client: 1, called: 1, got: 4, until: 99, fence: 6},
			hold{client: 2, called: 1, got: 5, until: 99, fence: 5})},
		{"no fences, timing broken", true, record(
			hold{client: 1, called: 1, got: 4, until: 99},
			hold{client: 2, called: 5, got: 6, until: 99})},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !both(t, test.events, test.timingBroken) {
				t.Error("it is called illegal")
			}
		})
	}
}

// Where they differ, and why, is said in the doc of the package.
func TestJudgesDifferOnLeasesHeldForNoTime(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"got and released in the moment in which another began": record(
			hold{client: 1, called: 1, got: 5, until: 99, release: 5, freed: 6},
			hold{client: 2, called: 1, got: 5, until: 99, release: 9, freed: 10}),
		"over when acquire returned, with a larger fence than the next": record(
			hold{client: 1, called: 1, got: 5, until: 4, fence: 6},
			hold{client: 2, called: 1, got: 8, until: 99, release: 9, freed: 10, fence: 5}),
	} {
		if v := exactly(t, events, false); v.Clean() {
			t.Errorf("%s: history calls it clean", name)
		}
		if err := Leases(events, filepath.Join(t.TempDir(), "picture.html")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPictureShowsWhatIsWrong(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "picture.html")
	events := append(record(
		hold{client: 1, called: 1, got: 2, until: 99, release: 9, freed: 10, key: "fine"},
		hold{client: 1, lease: 2, called: 1, got: 2, until: 99, release: 9, freed: 10, fence: 4},
		hold{client: 2, called: 3, got: 4, until: 9, fence: 5},
	), failed(7, 1, 3, 4, history.Unknown)...)
	err := Leases(events, picture)
	if err == nil || !strings.Contains(err.Error(), `leases of "k": no order explains what was recorded: see `+picture) {
		t.Fatalf("error %v", err)
	}
	page, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"client 1, lease 2: acquire → 4", "client 1, lease 2: release", "client 2, lease 1: validity over", "client 7, lease 1: acquire, unknown",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if strings.Contains(string(page), "client 1, lease 1") {
		t.Error("a key that is in order is in the picture")
	}
}

func TestPictureThatCannotBeWrittenIsAnErrorToo(t *testing.T) {
	err := Fences(record(
		hold{client: 1, called: 1, got: 2, until: 99, fence: 5},
		hold{client: 2, called: 3, got: 4, until: 99, fence: 5},
	), filepath.Join(t.TempDir(), "no", "such", "picture.html"))
	if !errors.Is(err, ErrIllegal) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
