package trial

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// patience is how long calls that are under way at the end are waited for before
// they count as cut.
const patience = 3 * time.Second

// tally is what one worker has done while it counted.
type tally struct {
	acquire, release, cycle *hdrhistogram.Histogram
	ok, failed              int64
	firstError              error
}

func newTally() *tally {
	return &tally{acquire: newHistogram(), release: newHistogram(), cycle: newHistogram()}
}

func (t *tally) note(c cycle) {
	if c.err != nil {
		t.fail(c.err)
		return
	}
	record := func(h *hdrhistogram.Histogram, d time.Duration) { h.RecordValue(int64(min(d, longest))) } // never out of range
	record(t.acquire, c.acquired-c.called)
	record(t.release, c.released-c.letGo)
	record(t.cycle, c.released-c.called)
	t.ok++
}

func (t *tally) fail(err error) {
	t.failed++
	if t.firstError == nil {
		t.firstError = err
	}
}

func (t *tally) add(o *tally) {
	t.acquire.Merge(o.acquire)
	t.release.Merge(o.release)
	t.cycle.Merge(o.cycle)
	t.ok += o.ok
	t.failed += o.failed
	if t.firstError == nil {
		t.firstError = o.firstError
	}
}

func (t *tally) figures(took time.Duration) Figures {
	f := Figures{
		Seconds: took.Seconds(), Cycles: t.ok, Rate: float64(t.ok) / took.Seconds(), Failed: t.failed,
		Acquire: latencyOf(t.acquire), Release: latencyOf(t.release), Cycle: latencyOf(t.cycle),
	}
	if t.firstError != nil {
		f.FirstError = t.firstError.Error()
	}
	return f
}

// uncontended has each worker do cycles on keys of its own. What ends within the
// time counts, so that it makes no difference how long a cycle is.
func (s *site) uncontended(ctx context.Context) (Figures, error) {
	var counting atomic.Bool
	tallies := make([]*tally, s.Workers)
	for i := range tallies {
		tallies[i] = newTally()
	}
	c := crew{lockers: s.lockers, keys: distinct, note: func(w *worker, c cycle) {
		if counting.Load() {
			tallies[w.id].note(c)
		}
	}}
	c.start(ctx, s.Workers)
	c.pass(s.WarmUp)
	from := s.meter.first(ctx)
	counting.Store(true)
	c.pass(s.Length)
	counting.Store(false)
	to := s.meter.last(ctx)
	cut := c.dismiss(patience)

	all := newTally()
	for i, w := range c.workers {
		w.mu.Lock()
		all.add(tallies[i])
		w.mu.Unlock()
	}
	f := all.figures(to.at.Sub(from.at))
	f.Cost, f.Others, f.Cut = cost(from, to, all.ok), others(from, to), cut
	return f, ctx.Err()
}
