package main

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// doRecorded does some cycles of one worker.
func doRecorded(t *testing.T, p phase, l locker) *recorder {
	t.Helper()
	p.name, p.workers, p.keys = "kept", 1, func(int) []string { return []string{"k"} }
	return doPhase(t, t.Context(), p, l)
}

// A lease that is renewed lasts until its last extension, and one that is lost until
// its holder is told.
func TestRenewedLeaseLastsUntilItIsLost(t *testing.T) {
	all := doRecorded(t, phase{cycles: 2, hold: time.Millisecond, kept: true}, &fakeLocker{})
	for _, h := range all.holds {
		if h.Lost != 0 || h.Until < h.Released {
			t.Errorf("hold %+v", h)
		}
	}
	all = doRecorded(t, phase{cycles: 1, hold: time.Hour, kept: true}, &fakeLocker{lifetime: time.Millisecond})
	if h := all.holds[0]; h.Lost == 0 || h.Until != 0 {
		t.Errorf("hold %+v", h)
	}
	if all.failed[lost] != 1 {
		t.Errorf("failed %v", all.failed)
	}
}

func TestHolderWritesUnderItsFence(t *testing.T) {
	store := new(history.Store)
	l := &fakeLocker{fence: func(n int64) fence.Token { return fence.Token(1000 + n) }}
	all := doRecorded(t, phase{cycles: 3, store: store, first: 7}, l)
	run := history.Run{Holds: all.holds, Appends: all.appends, Log: store.Log()}
	if v := run.Judge(); !v.Clean() || v.Appended != 3 || len(all.appends) != 3 {
		t.Errorf("%d of %d appends are there: %v", v.Appended, len(all.appends), v.Faults())
	}
	if a := all.appends[2]; a.Holder != 7 || a.Lease != 3 || a.Fence != 1003 || a.Outcome != history.OK || a.Returned < a.Called {
		t.Errorf("append %+v", a)
	}

	// Somebody with a larger fence has been there.
	if err := store.Append("k", 5000, "theirs"); err != nil {
		t.Fatal(err)
	}
	all = doRecorded(t, phase{cycles: 1, store: store}, l)
	if a := all.appends[0]; a.Outcome != history.Fail {
		t.Errorf("append %+v", a)
	}
}

func TestPulseIsWhatHappenedSinceTheLast(t *testing.T) {
	p := newPulse()
	l := &fakeLocker{grant: func(n int64) error {
		if n == 1 {
			return errors.New("not yet")
		}
		return nil
	}}
	rec := newRecorder()
	rec.live = p
	ph := phase{name: "distinct", workers: 1, cycles: 3, keys: func(int) []string { return []string{"k"} }}
	ph.run(t.Context(), []locker{l}, time.Now(), []*recorder{rec})
	ph.wait, ph.cycles = time.Hour, 1
	ph.run(t.Context(), []locker{l}, time.Now(), []*recorder{rec})
	b := p.take(time.Second, 3*time.Second)
	if b.Grants != 3 || b.Rate != 1.5 || b.UntilS != 3 || b.P99Own == 0 || b.P99Shared == 0 || b.Failed["other"] != 1 || len(b.Failed) != 1 {
		t.Errorf("%+v", b)
	}
	if b := p.take(0, time.Second); b.Grants != 0 || b.P99Own != 0 || b.P99Shared != 0 || len(b.Failed) != 0 {
		t.Errorf("and then %+v", b)
	}
}

func TestLockersShareTheWorkers(t *testing.T) {
	lockers := []locker{&fakeLocker{}, &fakeLocker{}, &fakeLocker{}}
	recs := make([]*recorder, 7)
	for i := range recs {
		recs[i] = newRecorder()
	}
	p := phase{name: "distinct", workers: 7, cycles: 7, first: 10, keys: func(w int) []string { return numbered("own:", 1) }}
	all, _ := p.run(t.Context(), lockers, time.Now(), recs)
	for i, want := range []int64{3, 2, 2} {
		if got := lockers[i].(*fakeLocker).n.Load(); got < want {
			t.Errorf("locker %d was asked %d times, want %d or more", i, got, want)
		}
	}
	for _, h := range all.holds {
		if h.Holder < 10 || h.Holder > 16 {
			t.Errorf("holder %d", h.Holder)
		}
	}
}
