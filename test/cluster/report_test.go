package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/test/cluster/client"
)

// report is what a run leaves.
type report struct {
	Scenario, Backend, Server string
	Seed                      uint64 `json:",omitempty"`
	Clients                   int
	Took                      time.Duration
	Faults                    []string // that have been seen to happen

	Acquisitions int
	Lost         int // leases that ended while they were held
	Steps        int // of the clocks of clients
	Down         int // connections to nodes that ended, or were not made
	Appended     int
	Refused      int // appends whose fence was stale

	// The longest time in which nobody got anything, and the longest that somebody
	// waited for a key that nobody had.
	LongestWithout, LongestWait time.Duration

	// How long it took, after a majority was back, until somebody got something.
	Back time.Duration `json:",omitempty"`

	Overlaps int      // with clocks that are worse than the lock allows for there may be some
	Wrong    []string // nothing, if all is well
}

func (r *report) figures(run history.Run, began, took time.Duration, sums []client.Summary) {
	r.Took = took
	r.Acquisitions, r.Appended = len(run.Holds), len(run.Log)
	for _, h := range run.Holds {
		if h.Lost != 0 {
			r.Lost++
		}
	}
	for _, a := range run.Appends {
		if a.Outcome == history.Fail {
			r.Refused++
		}
	}
	for _, s := range sums {
		r.Down += s.Down
		r.Steps += s.Steps
	}
	r.LongestWithout = without(run.Holds, began, began+took)
	r.LongestWait = wait(run.Holds)
}

// without is the longest time in which nobody got anything.
func without(holds []history.Hold, began, ended time.Duration) (longest time.Duration) {
	got := []time.Duration{began, ended}
	for _, h := range holds {
		got = append(got, h.Acquired)
	}
	slices.Sort(got)
	for i := 1; i < len(got) && got[i] <= ended; i++ {
		longest = max(longest, got[i]-got[i-1])
	}
	return longest
}

// wait is the longest time that somebody waited for a key which nobody had: from
// the call, or the end of the hold before if that was later.
func wait(holds []history.Hold) (longest time.Duration) {
	holds = slices.SortedFunc(slices.Values(holds), func(a, b history.Hold) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.Acquired, b.Acquired))
	})
	var key string
	var free time.Duration // since when nobody has the key
	for _, h := range holds {
		if h.Key != key {
			key, free = h.Key, 0
		}
		longest = max(longest, h.Acquired-max(h.Called, free))
		free = max(free, over(h))
	}
	return longest
}

// over is when the holder no longer had it.
func over(h history.Hold) time.Duration {
	end := h.Until
	for _, at := range []time.Duration{h.Released, h.Lost} {
		if at != 0 {
			end = min(end, at)
		}
	}
	return end
}

func (r *report) verdict(v history.Verdict) {
	r.Overlaps = len(v.Overlaps)
	r.Wrong = v.Faults()
	if r.Acquisitions == 0 || len(r.Faults) == 0 {
		r.Wrong = append(r.Wrong, "the run shows nothing")
	}
}

func (r *report) String() string {
	verdict := "clean"
	if len(r.Wrong) > 0 {
		verdict = fmt.Sprintf("%d things are wrong", len(r.Wrong))
	}
	back := ""
	if r.Back != 0 {
		back = fmt.Sprintf("; first grant %v after a majority was back", ms(r.Back))
	}
	return fmt.Sprintf("%s on %s (%s): %d clients, %d acquisitions in %v, %d lost; %d appended, %d refused as stale; "+
		"faults: %s; longest without a grant %v, longest wait for a free key %v%s; %s",
		r.Scenario, r.Backend, r.Server, r.Clients, r.Acquisitions, ms(r.Took), r.Lost, r.Appended, r.Refused,
		strings.Join(r.Faults, ", "), ms(r.LongestWithout), ms(r.LongestWait), back, verdict)
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// leave writes the report down.
func (r *report) leave(t *testing.T) {
	t.Helper()
	t.Log(r)
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), "report.json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
