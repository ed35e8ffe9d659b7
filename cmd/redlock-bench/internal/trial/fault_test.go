package trial

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

const ms = time.Millisecond

// done is a cycle without a pause in it.
func done(called, acquired, released time.Duration) ended {
	return ended{called: called, acquired: acquired, letGo: acquired, released: released}
}

func TestSpellHasWhatEndedInIt(t *testing.T) {
	all := []ended{
		done(90*ms, 95*ms, 99*ms),  // before
		done(95*ms, 99*ms, 100*ms), // ends in it
		done(150*ms, 160*ms, 190*ms),
		done(195*ms, 199*ms, 200*ms), // after
		{called: 110 * ms, acquired: 120 * ms, failed: true},
		{called: 110 * ms, acquired: 120 * ms, letGo: 120 * ms, released: 130 * ms, failed: true},
	}
	s := spellOf(all, 100*ms, 200*ms)
	if s.Cycles != 2 || s.Failed != 2 || s.Rate != 20 || s.Seconds != 0.1 {
		t.Errorf("%+v", s)
	}
}

// Whoever waits through the whole fault must not vanish from its latencies.
func TestAcquiresThatHangCountWithTheirAge(t *testing.T) {
	all := []ended{done(90*ms, 110*ms, 111*ms), done(100*ms, 103*ms, 104*ms), done(190*ms, 250*ms, 251*ms), {called: 100 * ms, acquired: 150 * ms, failed: true}}
	hanging := []call{{acquiring, 60 * ms}, {acquiring, 500 * ms}, {releasing, 40 * ms}}
	got := acquiresIn(all, hanging, 100*ms, 200*ms)
	if want := []time.Duration{3 * ms, 60 * ms}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestLongestCallsOfAFault(t *testing.T) {
	all := []ended{
		done(1000*ms, 1010*ms, 1030*ms),
		done(900*ms, 1990*ms, 1995*ms),  // its acquire began before
		done(2990*ms, 4000*ms, 4001*ms), // ended after it
	}
	var c Course
	c.extremes(all, []call{{releasing, 700 * ms}, {acquiring, 3000 * ms}}, 1000*ms, 3000*ms)
	if c.LongestAcquire != 2000 || c.LongestRelease != 700 || c.Unfinished != 1 {
		t.Errorf("%+v", c)
	}
	c = Course{}
	c.extremes(all, nil, 1000*ms, 3000*ms)
	if c.LongestAcquire != 10 || c.LongestRelease != 20 || c.Unfinished != 0 {
		t.Errorf("%+v", c)
	}
}

func TestTimelineIsInTenthsOfASecond(t *testing.T) {
	all := []ended{
		done(0, 1050*ms, 1060*ms),
		done(1080*ms, 1090*ms, 1110*ms), // acquired in one, released in the next
		{called: 1200 * ms, acquired: 1210 * ms, failed: true},
		done(1290*ms, 1310*ms, 1320*ms), // in the rest that is no whole moment
		done(0, 900*ms, 950*ms),         // before
	}
	got := timeline(all, 1000*ms, 1350*ms)
	want := []Moment{{AtS: 0, Rate: 10, P99: 1_050_000}, {AtS: 0.1, Rate: 10}, {AtS: 0.2, Failed: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLongestWaitIsNotOlderThanWhatCounts(t *testing.T) {
	from := time.Now()
	calls := []call{{acquiring, 300 * ms}, {releasing, 900 * ms}, {acquiring, 700 * ms}}
	if got := longestWait(calls, from, from.Add(500*ms)); got != 500*ms {
		t.Errorf("%v", got)
	}
	if got := longestWait(calls[:2], from, from.Add(500*ms)); got != 300*ms {
		t.Errorf("%v", got)
	}
}

func TestFairnessIsOfHandovers(t *testing.T) {
	x := &contest{given: []int64{1, 3}}
	f := x.fairness([]time.Duration{5 * ms, ms, 2 * ms}, 40*ms, 2*time.Second)
	if f.Handovers != 4 || f.PerSecond != 2 || f.Jain != 0.8 || f.LongestWait != 40_000 || f.WaitP50 != 2000 || f.LongestOverMedian != 20 {
		t.Errorf("%+v", *f)
	}
	if !reflect.DeepEqual(f.Shares, []int64{3, 1}) {
		t.Errorf("shares %v", f.Shares)
	}
}

func TestTallyKeepsTheFirstError(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	a, b := newTally(), newTally()
	a.note(cycle{err: first})
	a.note(cycle{err: second})
	b.note(cycle{called: 0, acquired: 2 * ms, letGo: 2 * ms, released: 3 * ms})
	b.add(a)
	f := b.figures(2 * time.Second)
	if f.Failed != 2 || f.FirstError != "first" || f.Cycles != 1 || f.Rate != 0.5 {
		t.Errorf("%+v", f)
	}
	if f.Acquire.P50 < 1980 || f.Acquire.P50 > 2020 || f.Cycle.Max < 2970 || f.Cycle.Max > 3030 {
		t.Errorf("acquire %+v, cycle %+v", *f.Acquire, *f.Cycle)
	}
}
