package trial

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// theKey is what all workers want.
const theKey = "shared"

// contest is a key that workers share, as those who hold it see it.
type contest struct {
	inside   atomic.Int64 // how many hold it
	overlaps atomic.Int64
	last     atomic.Int64 // the worker that held it last
	counting atomic.Bool
	given    []int64           // handovers to each worker
	waits    [][]time.Duration // of each worker
	tallies  []*tally
}

// contended has all workers want one key.
func (s *site) contended(ctx context.Context) (Figures, error) {
	x := &contest{given: make([]int64, s.Workers), waits: make([][]time.Duration, s.Workers)}
	for range s.Workers {
		x.tallies = append(x.tallies, newTally())
	}
	x.last.Store(-1)
	c := crew{
		lockers: s.lockers, keys: func(int) []string { return []string{theKey} },
		hold: func(w *worker) { x.hold(w, s.Hold) }, note: x.note,
	}
	c.start(ctx, s.Workers)
	c.pass(s.WarmUp)
	from, before := s.meter.first(ctx), c.now()
	x.counting.Store(true)
	c.pass(s.Length)
	x.counting.Store(false)
	to, waiting := s.meter.last(ctx), c.underWay()
	cut := c.dismiss(patience)

	all, waits := newTally(), []time.Duration(nil)
	for i, w := range c.workers {
		w.mu.Lock()
		all.add(x.tallies[i])
		waits = append(waits, x.waits[i]...)
		w.mu.Unlock()
	}
	took := to.at.Sub(from.at)
	f := all.figures(took)
	f.Others, f.Cut, f.Overlaps = others(from, to), cut, x.overlaps.Load()
	f.Contended = x.fairness(waits, longestWait(waiting, c.epoch.Add(before), to.at), took)
	f.Cost = cost(from, to, f.Contended.Handovers)
	if f.Cost != nil {
		f.Contended.Commands = f.Cost.Commands
	}
	f.Cost = cost(from, to, all.ok)
	return f, ctx.Err()
}

// hold is what the holder of the key does.
func (x *contest) hold(w *worker, d time.Duration) {
	if x.inside.Add(1) != 1 {
		x.overlaps.Add(1)
	}
	if x.last.Swap(int64(w.id)) != int64(w.id) && x.counting.Load() {
		atomic.AddInt64(&x.given[w.id], 1)
	}
	w.timer.Reset(d)
	<-w.timer.C
	x.inside.Add(-1)
}

func (x *contest) note(w *worker, c cycle) {
	if !x.counting.Load() {
		return
	}
	x.tallies[w.id].note(c)
	if c.err == nil {
		x.waits[w.id] = append(x.waits[w.id], c.acquired-c.called)
	}
}

// longestWait is the longest of those that have not ended, of which only what
// lies in the time that counts is known to be its fault.
func longestWait(calls []call, from, to time.Time) (longest time.Duration) {
	for _, c := range calls {
		if c.what == acquiring {
			longest = max(longest, min(c.age, to.Sub(from)))
		}
	}
	return longest
}

// fairness is how the key was shared.
func (x *contest) fairness(waits []time.Duration, unfinished, took time.Duration) *Fairness {
	shares := make([]int64, len(x.given))
	f := &Fairness{}
	for i := range x.given {
		shares[i] = atomic.LoadInt64(&x.given[i])
		f.Handovers += shares[i]
	}
	slices.Sort(shares)
	slices.Reverse(shares)
	f.Shares, f.Jain = shares, jain(shares)
	f.PerSecond = float64(f.Handovers) / took.Seconds()
	slices.Sort(waits)
	longest := unfinished
	if len(waits) > 0 {
		longest = max(longest, waits[len(waits)-1])
	}
	median := percentile(waits, 50)
	f.WaitP50, f.WaitP99, f.LongestWait = micros(median), micros(percentile(waits, 99)), micros(longest)
	if median > 0 {
		f.LongestOverMedian = float64(longest) / float64(median)
	}
	return f
}
