package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

// ownKeys is how many keys each worker has where they do not fight.
const ownKeys = 8

// crew are workers that do cycles until they are told to stop.
type crew struct {
	lockers []rival.Locker
	keys    func(worker int) []string
	hold    func(*worker)        // nil: nothing is held any longer than to let it go
	note    func(*worker, cycle) // of each cycle that has ended; called under the worker's mu

	over    atomic.Bool     // they are to stop after the cycle they are in
	ctx     context.Context // ends when they are to stop at once
	stop    context.CancelFunc
	epoch   time.Time
	workers []*worker
	done    chan struct{} // closed when all have stopped
}

// cycle is one acquire and its release. Moments are counted from the crew's
// epoch.
type cycle struct {
	called, acquired, letGo, released time.Duration
	err                               error // of the call that ended last
}

// worker is one of a crew.
type worker struct {
	*crew
	id    int
	timer *time.Timer
	since atomic.Int64 // when the call that is under way began; idle if none is
	what  atomic.Int32 // which call that is

	mu sync.Mutex // guards what note keeps for this worker: some calls are not waited for
}

// idle is the beginning of no call.
const idle = -1

// Calls that may be under way.
const (
	acquiring int32 = iota
	releasing
)

// start sets so many to work.
func (c *crew) start(ctx context.Context, workers int) {
	c.ctx, c.stop = context.WithCancel(ctx)
	c.epoch, c.done = time.Now(), make(chan struct{})
	var group sync.WaitGroup
	for i := range workers {
		w := &worker{crew: c, id: i, timer: time.NewTimer(time.Hour)}
		w.since.Store(idle)
		c.workers = append(c.workers, w)
	}
	for _, w := range c.workers {
		group.Go(w.work)
	}
	go func() {
		group.Wait()
		close(c.done)
	}()
}

func (c *crew) now() time.Duration { return time.Since(c.epoch) }

// pass lets the crew work for a time, or until ctx ends.
func (c *crew) pass(d time.Duration) { wait(c.ctx, d) }

// dismiss tells them to stop after the cycle that each is in, since an acquire that
// is given up may leave keys behind which are not the implementation's fault. Who
// has not finished after patience is interrupted; how many that were is returned.
// Some of them may never come back.
func (c *crew) dismiss(patience time.Duration) (cut int) {
	c.over.Store(true)
	if !c.ended(patience) {
		cut = len(c.underWay())
		c.stop()
		c.ended(patience)
	}
	c.stop()
	return cut
}

// ended waits until all have stopped, or for so long.
func (c *crew) ended(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// call is one that is under way.
type call struct {
	what int32
	age  time.Duration
}

// underWay are the calls that have not ended.
func (c *crew) underWay() (calls []call) {
	now := c.now()
	for _, w := range c.workers {
		if since := w.since.Load(); since != idle {
			calls = append(calls, call{w.what.Load(), now - time.Duration(since)})
		}
	}
	return calls
}

func (w *worker) work() {
	defer w.timer.Stop()
	keys, locker := w.keys(w.id), w.lockers[w.id%len(w.lockers)]
	after := context.WithoutCancel(w.ctx) // what has been acquired is released
	for i := 0; !w.over.Load() && w.ctx.Err() == nil; i++ {
		var c cycle
		c.called = w.begin(acquiring)
		lease, err := locker.Acquire(w.ctx, keys[i%len(keys)])
		c.acquired = w.now()
		if err != nil {
			w.since.Store(idle)
			if w.ctx.Err() != nil {
				return
			}
			c.err = err
			w.record(c)
			w.pause()
			continue
		}
		if w.hold != nil {
			w.since.Store(idle)
			w.hold(w)
		}
		c.letGo = w.begin(releasing)
		c.err = lease.Release(after)
		w.since.Store(idle)
		c.released = w.now()
		w.record(c)
	}
}

func (w *worker) record(c cycle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(w, c)
}

func (w *worker) begin(what int32) time.Duration {
	now := w.now()
	w.what.Store(what)
	w.since.Store(int64(now))
	return now
}

// pause is between a failure and the next try: nodes that are down answer at
// once, and asking them again at once would measure that.
func (w *worker) pause() {
	w.timer.Reset(time.Millisecond + rand.N(9*time.Millisecond))
	select {
	case <-w.timer.C:
	case <-w.ctx.Done():
	}
}

// distinct are the keys of a worker with which nobody else does anything.
func distinct(worker int) []string {
	keys := make([]string, ownKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("own:%d:%d", worker, i)
	}
	return keys
}
