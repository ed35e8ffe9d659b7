package cluster

import (
	"os"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

func TestLongestTimes(t *testing.T) {
	const ms = time.Millisecond
	hold := func(key string, called, acquired, released time.Duration) history.Hold {
		return history.Hold{Key: key, Called: called * ms, Acquired: acquired * ms, Released: released * ms, Until: 1000 * ms}
	}
	for _, test := range []struct {
		name          string
		holds         []history.Hold
		without, wait time.Duration
	}{
		{"nobody gets anything", nil, 100, 0},
		{"one waits for nobody", []history.Hold{hold("a", 10, 40, 50)}, 60, 30},
		{"one waits for another, and 5 ms more", []history.Hold{hold("a", 1, 2, 60), hold("a", 10, 65, 70)}, 63, 5},
		{"… for the end of a validity", []history.Hold{{Key: "a", Called: 1 * ms, Acquired: 2 * ms, Until: 60 * ms}, hold("a", 10, 65, 70)}, 63, 5},
		{"another key does not count", []history.Hold{hold("a", 1, 2, 60), hold("b", 10, 65, 70)}, 63, 55},
		{"the beginning counts", []history.Hold{hold("a", 90, 91, 95)}, 91, 1},
	} {
		if got := without(test.holds, 0, 100*ms); got != test.without*ms {
			t.Errorf("%s: %v without a grant, want %v", test.name, got, test.without*ms)
		}
		if got := wait(test.holds); got != test.wait*ms {
			t.Errorf("%s: longest wait %v, want %v", test.name, got, test.wait*ms)
		}
	}
}

func TestRecordTakesWholeLines(t *testing.T) {
	r := newRecord(t)
	other, err := os.OpenFile(r.file.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	write := func(text string) {
		t.Helper()
		if _, err := other.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	first := `{"at_ns":5,"client":1,"lease":1,"op":"acquire","outcome":"ok","key":"k","until_ns":9}` + "\n"
	write(first + first[:20])
	if n := len(r.read()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	write(first[20:])
	if n := len(r.read()); n != 1 {
		t.Errorf("%d more events, want 1", n)
	}
	if before, after := r.since(4), r.since(5); before != 2 || after != 0 {
		t.Errorf("%d leases after 4 ns, want 2; %d after 5 ns, want 0", before, after)
	}
}

func TestRunThatShowsNothingIsNoProof(t *testing.T) {
	for _, r := range []report{{}, {Acquisitions: 1}, {Faults: []string{"one"}}} {
		if r.verdict(history.Verdict{}); len(r.Wrong) != 1 {
			t.Errorf("%d acquisitions, %d faults: %q", r.Acquisitions, len(r.Faults), r.Wrong)
		}
	}
}
