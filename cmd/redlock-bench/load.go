package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// phase is one kind of load, done by some workers until it is over.
type phase struct {
	name    string
	workers int
	length  time.Duration // unless cycles says how much is to be done
	cycles  int           // of all workers together
	seed    uint64

	keys func(worker int) []string // what a worker draws from
	wait time.Duration             // how long to wait for a key; 0 is one attempt
	hold time.Duration
	kept bool // what is held is renewed meanwhile

	first int            // of the first worker, where others work at the same time
	store *history.Store // what is appended to under every fence; nil for nothing
}

// ownKeys is how many keys each worker has where they do not fight.
const ownKeys = 8

// phases are the two of a run.
func (s settings) phases() []phase {
	distinct := phase{
		name: "distinct", workers: s.workers, length: s.length, cycles: s.cycles, seed: s.seed,
		keys: func(worker int) []string { return numbered(fmt.Sprintf("own:%d:", worker), ownKeys) },
	}
	contended := distinct
	contended.name, contended.seed = "contended", s.seed+1
	contended.wait, contended.hold = s.ttl, s.hold
	shared := numbered("shared:", s.keys)
	contended.keys = func(int) []string { return shared }
	return []phase{distinct, contended}
}

func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(prefix, i)
	}
	return keys
}

// run does the phase, its workers spread over the lockers, and returns what each
// worker has recorded in recs, merged, and how long it took. It ends early when
// ctx does. Moments are counted from epoch.
func (p phase) run(ctx context.Context, lockers []locker, epoch time.Time, recs []*recorder) (*recorder, time.Duration) {
	inTime, cancel := ctx, context.CancelFunc(func() {})
	if p.cycles == 0 {
		inTime, cancel = context.WithTimeout(ctx, p.length)
	}
	defer cancel()
	began := time.Now()
	var group sync.WaitGroup
	for i, rec := range recs {
		w := &worker{
			phase: p, id: p.first + i, locker: lockers[i%len(lockers)], epoch: epoch, recorder: rec,
			drawn: p.keys(i), rand: rand.New(rand.NewPCG(p.seed, uint64(i))), timer: time.NewTimer(time.Hour),
			ctx: ctx, inTime: inTime, after: context.WithoutCancel(ctx),
		}
		todo := -1
		if p.cycles > 0 {
			todo = p.cycles / p.workers
			if i < p.cycles%p.workers {
				todo++
			}
		}
		group.Go(func() { w.work(todo) })
	}
	group.Wait()
	took := time.Since(began)
	all := newRecorder()
	for _, rec := range recs {
		all.merge(rec)
	}
	return all, took
}

// worker is one of those who do a phase.
type worker struct {
	phase
	*recorder
	id     int
	leases int // under which it has written
	locker locker
	epoch  time.Time
	drawn  []string
	rand   *rand.Rand
	timer  *time.Timer

	ctx    context.Context // ends when the run is interrupted
	inTime context.Context // and when the phase is over
	after  context.Context // does not end: what has been acquired is released
}

// work does so many cycles, or with a negative number as many as fit in.
func (w *worker) work(todo int) {
	defer w.timer.Stop()
	for ; todo != 0 && w.inTime.Err() == nil; todo-- {
		w.once()
	}
}

func (w *worker) now() time.Duration { return time.Since(w.epoch) }

// once does one cycle. Only one that succeeded from acquire to release, and
// whose lease lasted, counts as done.
func (w *worker) once() {
	key := w.drawn[w.rand.IntN(len(w.drawn))]
	began := w.now()
	lease, err := w.acquire(key)
	got := w.now()
	if err != nil {
		w.fail(err)
		return
	}
	w.live.granted(w.wait > 0, got-began)
	h := history.Hold{
		Key: key, Holder: w.id, Fence: lease.Fence(), Called: began, Acquired: got, Until: got + lease.Remaining(),
	}
	if w.kept {
		lease.KeepAlive()
	}
	end := w.keep(lease)
	if errors.Is(end, errLost) {
		h.Lost = w.now()
	}
	if w.kept {
		h.Until = renewedUntil(w.now(), lease.Remaining(), h.Lost)
	}
	w.write(h)
	h.Released = w.now()
	err = lease.Release(w.after)
	done := w.now()
	w.holds = append(w.holds, h)
	if errors.Is(end, errLost) {
		err = errors.Join(end, err)
	}
	switch {
	case err != nil:
		w.fail(err)
	case end != nil:
		w.cutShort++
	default:
		w.success([steps]time.Duration{
			stepAcquire: got - began, stepHold: h.Released - got, stepRelease: done - h.Released, stepCycle: done - began,
		})
	}
}

// renewedUntil is how long a lease that was renewed is known to be valid at the end
// of a hold. Of one that was lost it is not known, and then the loss is what ended
// it.
func renewedUntil(now, remaining, lost time.Duration) time.Duration {
	if lost != 0 {
		return 0
	}
	return now + remaining
}

// write appends to the guarded store under a hold's fence, if there are both: at
// its end, also when it was lost, since that is when a write may come too late.
func (w *worker) write(h history.Hold) {
	if w.store == nil || !h.Fence.Valid() {
		return
	}
	w.leases++
	a := history.Append{
		Entry:  history.Entry{Key: h.Key, Fence: h.Fence, Element: fmt.Sprintf("%d/%d", w.id, w.leases)},
		Holder: w.id, Lease: w.leases, Called: w.now(), Outcome: history.OK,
	}
	if err := w.store.Append(a.Key, a.Fence, a.Element); err != nil {
		a.Outcome = history.Fail // the store refuses what is late, and nothing else goes wrong in it
	}
	a.Returned = w.now()
	w.appends = append(w.appends, a)
}

// Why a cycle ended before its time.
var (
	errOver   = errors.New("the phase was over")
	errWaited = errors.New("waited in vain")
	errLost   = errors.New("the lease ended while it was held")
)

// acquire tries once or waits, as the phase says.
func (w *worker) acquire(key string) (lease, error) {
	if w.wait == 0 {
		// One attempt is short, and is let finish when the phase is over.
		l, err := w.locker.TryAcquire(w.ctx, key)
		if err != nil && w.ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", errOver, err)
		}
		return l, err
	}
	ctx, cancel := context.WithTimeout(w.inTime, w.wait)
	defer cancel()
	l, err := w.locker.Acquire(ctx, key)
	switch {
	case err == nil:
		return l, nil
	case w.inTime.Err() != nil:
		return nil, fmt.Errorf("%w: %w", errOver, err)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", errWaited, err)
	}
	return nil, err
}

// keep holds a lease for as long as the phase says, and says why if it was
// shorter.
func (w *worker) keep(l lease) error {
	if w.hold == 0 {
		return nil
	}
	w.timer.Reset(w.hold)
	select {
	case <-w.timer.C:
		return nil
	case <-l.Context().Done():
		return fmt.Errorf("%w: %w", errLost, context.Cause(l.Context()))
	case <-w.inTime.Done():
		return errOver
	}
}

// fail records why a cycle failed, unless it was only cut short, and pauses:
// nodes that are down answer at once, and asking them again at once would
// measure that.
func (w *worker) fail(err error) {
	if errors.Is(err, errOver) {
		w.cutShort++
		return
	}
	w.failure(classify(err), err)
	w.timer.Reset(time.Millisecond + time.Duration(w.rand.Int64N(int64(9*time.Millisecond))))
	select {
	case <-w.timer.C:
	case <-w.inTime.Done():
	}
}
