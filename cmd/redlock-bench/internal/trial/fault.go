package trial

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"
)

// What can be done to nodes, and undone.
const (
	Kill     = "kill"
	Stop     = "stop"
	Continue = "continue" // those that were stopped
)

// ended is a cycle as the course needs it. What is not known yet is 0.
type ended struct {
	called, acquired, letGo, released time.Duration
	failed                            bool
}

// fault has each worker do cycles on keys of its own, does something to nodes
// meanwhile, and follows what becomes of the load.
func (s *site) fault(ctx context.Context) (Figures, error) {
	seen, first := make([][]ended, s.Workers), make([]error, s.Workers)
	c := crew{lockers: s.lockers, keys: distinct, note: func(w *worker, c cycle) {
		if first[w.id] == nil {
			first[w.id] = c.err
		}
		seen[w.id] = append(seen[w.id], ended{c.called, c.acquired, c.letGo, c.released, c.err != nil})
	}}
	c.start(ctx, s.Workers)
	defer c.dismiss(patience)
	c.pass(s.WarmUp)
	began, from := c.now(), s.meter.read()
	var course Course
	c.pass(s.Length)
	course.GoroutinesBefore, course.HeapBefore = footprint()
	healthy := c.now()
	if err := s.do(s.Act, s.Nodes); err != nil {
		return Figures{}, err
	}
	faulty := c.now()
	c.pass(s.Faulty)
	over, hanging := c.now(), c.underWay()
	course.GoroutinesEnd, course.HeapEnd = footprint()
	var undone error
	if s.Act == Stop {
		undone = s.do(Continue, s.Nodes)
		c.pass(s.After)
	}
	end, to := c.now(), s.meter.read()
	cut := c.dismiss(patience)

	var all []ended
	var failure error
	for i, w := range c.workers {
		w.mu.Lock()
		all = append(all, seen[i]...)
		if failure == nil {
			failure = first[i]
		}
		w.mu.Unlock()
	}
	course.BeganS, course.EndedS = (faulty - began).Seconds(), (over - began).Seconds()
	course.Healthy, course.Faulty = spellOf(all, began, healthy), spellOf(all, faulty, over)
	course.Healthy.Acquire = exactly(acquiresIn(all, nil, began, healthy))
	course.Faulty.Acquire = exactly(acquiresIn(all, hanging, faulty, over))
	if s.Act == Stop {
		after := spellOf(all, over, end)
		after.Acquire = exactly(acquiresIn(all, nil, over, end))
		course.After = &after
	}
	course.extremes(all, hanging, faulty, over)
	course.Timeline = timeline(all, began, end)
	f := Figures{
		Seconds: (end - began).Seconds(), Cycles: course.Healthy.Cycles, Rate: course.Healthy.Rate, Acquire: course.Healthy.Acquire,
		Failed: course.Healthy.Failed + course.Faulty.Failed, Cut: cut, Others: others(from, to), Fault: &course,
	}
	if failure != nil {
		f.FirstError = failure.Error()
	}
	return f, errors.Join(undone, ctx.Err())
}

// footprint is what this process consists of.
func footprint() (goroutines int, heapMB float64) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return runtime.NumGoroutine(), float64(mem.HeapInuse) / (1 << 20)
}

// spellOf is what ended from one moment to another.
func spellOf(all []ended, from, to time.Duration) Spell {
	s := Spell{Seconds: (to - from).Seconds()}
	for _, e := range all {
		if at := e.end(); at < from || at >= to {
			continue
		}
		if e.failed {
			s.Failed++
		} else {
			s.Cycles++
		}
	}
	s.Rate = float64(s.Cycles) / s.Seconds
	return s
}

// acquiresIn are how long those took that began and ended from one moment to
// another, and how old those were that hung at the end of it and had begun in it.
func acquiresIn(all []ended, hanging []call, from, to time.Duration) (took []time.Duration) {
	for _, e := range all {
		if e.called >= from && e.acquired < to && e.letGo > 0 {
			took = append(took, e.acquired-e.called)
		}
	}
	for _, h := range hanging {
		if h.what == acquiring && h.age <= to-from {
			took = append(took, h.age)
		}
	}
	return took
}

// end is when a cycle had ended, or had failed to begin.
func (e ended) end() time.Duration { return max(e.acquired, e.released) }

// extremes are the longest calls that began in the fault, and how many hung at
// its end.
func (c *Course) extremes(all []ended, hanging []call, from, to time.Duration) {
	var acquire, release time.Duration
	for _, e := range all {
		if e.called >= from && e.called < to {
			acquire = max(acquire, min(e.acquired, to)-e.called)
		}
		if e.letGo >= from && e.letGo < to {
			release = max(release, min(e.released, to)-e.letGo)
		}
	}
	for _, h := range hanging {
		age := min(h.age, to-from)
		if h.what == acquiring {
			acquire = max(acquire, age)
		} else {
			release = max(release, age)
		}
		if h.age >= time.Second {
			c.Unfinished++
		}
	}
	c.LongestAcquire, c.LongestRelease = acquire.Seconds()*1000, release.Seconds()*1000
}

// momentLength is how long a moment of the timeline is.
const momentLength = 100 * time.Millisecond

// timeline is the course from one moment to another. A rest at the end that is no
// whole moment is left out.
func timeline(all []ended, from, to time.Duration) []Moment {
	moments := make([]Moment, max(0, (to-from)/momentLength))
	acquires := make([][]time.Duration, len(moments))
	at := func(t time.Duration) (int, bool) {
		i := int((t - from) / momentLength)
		return i, t >= from && i < len(moments)
	}
	for _, e := range all {
		if i, ok := at(e.acquired); ok && e.letGo > 0 {
			acquires[i] = append(acquires[i], e.acquired-e.called)
		}
		if i, ok := at(e.end()); ok {
			if e.failed {
				moments[i].Failed++
			} else {
				moments[i].Rate++
			}
		}
	}
	for i := range moments {
		moments[i].AtS = (time.Duration(i) * momentLength).Seconds()
		moments[i].Rate /= momentLength.Seconds()
		slices.Sort(acquires[i])
		moments[i].P99 = micros(percentile(acquires[i], 99))
	}
	return moments
}
