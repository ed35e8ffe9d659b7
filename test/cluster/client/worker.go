package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/redlock"
)

// worker is one client.
type worker struct {
	Settings
	number int
	locker *redlock.Locker
	store  store
	file   io.Writer
	draw   *rand.Rand

	lease int // the number of the last
}

func newWorker(s Settings, number int, l *redlock.Locker, resource *redis.Client, file io.Writer) *worker {
	return &worker{
		Settings: s, number: number, locker: l, store: store{resource}, file: file,
		draw: rand.New(rand.NewPCG(s.Seed, uint64(number))),
	}
}

// patience is how long a release, or a word with the resource, may take.
const patience = 10 * time.Second

// work does one cycle after the other until ctx ends.
func (w *worker) work(ctx context.Context) {
	for pause(ctx, w.upTo(w.Pause)) {
		w.cycle(ctx)
	}
}

func (w *worker) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.draw.Int64N(int64(d)))
}

// pause waits, and says whether there is anything left to do.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (w *worker) cycle(ctx context.Context) {
	w.lease++
	key := w.Keys[w.draw.IntN(len(w.Keys))]
	w.note(history.Event{Op: history.OpAcquire, Key: key})
	acquire := w.locker.Acquire
	if w.draw.IntN(8) == 0 {
		acquire = w.locker.TryAcquire
	}
	lease, err := acquire(ctx, key)
	if err != nil {
		w.note(history.Event{Op: history.OpAcquire, Outcome: history.Fail, Key: key})
		return
	}
	w.note(history.Event{
		Op: history.OpAcquire, Outcome: history.OK, Key: key,
		Token: lease.Token().Digest(), Fence: lease.Fence(), Until: w.until(lease),
	})

	// What was begun under a lease is brought to its end, also when no more is to
	// be begun.
	after := context.WithoutCancel(ctx)
	hold := w.upTo(w.Hold)
	if w.Work == Append && w.draw.IntN(32) == 0 {
		hold = w.TTL + w.TTL/2
		lease.KeepAlive()
	}
	element := fmt.Sprintf("%d.%d", w.number, w.lease)
	if w.Work == Append {
		w.hold(ctx, lease, hold/2)
		w.change(key, element, func() error { return w.store.append(after, key, lease.Fence(), element) })
		w.hold(ctx, lease, hold/2)
	} else {
		w.update(ctx, lease, hold, element)
	}
	if lease.Context().Err() != nil {
		w.note(history.Event{Op: history.OpLost, Key: key})
	}

	w.note(history.Event{Op: history.OpRelease, Key: key})
	inTime, cancel := context.WithTimeout(after, patience)
	defer cancel()
	outcome := history.OK
	if err := lease.Release(inTime); errors.Is(err, redlock.ErrLost) {
		outcome = history.Fail
	} else if err != nil {
		outcome = history.Unknown
	}
	w.note(history.Event{Op: history.OpRelease, Outcome: outcome, Key: key})
}

// update looks whether it still holds the lock, and then writes, as people do.
// What happens in between it cannot know.
func (w *worker) update(ctx context.Context, lease *redlock.Lease, hold time.Duration, element string) {
	after := context.WithoutCancel(ctx)
	key, f := lease.Key(), lease.Fence()
	list, err := w.store.read(after, w.Work, key, f)
	if err != nil || lease.Context().Err() != nil {
		return
	}
	w.change(key, element, func() error {
		pause(after, hold)
		return w.store.write(after, w.Work, key, f, list, element)
	})
}

// change does something to the resource, and notes it.
func (w *worker) change(key, element string, do func() error) {
	w.note(history.Event{Op: history.OpAppend, Key: key, Element: element})
	outcome := history.OK
	if err := do(); errors.Is(err, fence.ErrStale) {
		outcome = history.Fail
	} else if err != nil {
		outcome = history.Unknown
	}
	w.note(history.Event{Op: history.OpAppend, Outcome: outcome, Key: key, Element: element})
}

// hold keeps the lease for as long, and looks now and then how long it is still
// valid: that is what a holder goes by. It ends with the lease.
func (w *worker) hold(ctx context.Context, lease *redlock.Lease, d time.Duration) {
	const look = 50 * time.Millisecond
	known := w.until(lease)
	for end := Now() + d; ; {
		left := end - Now()
		select {
		case <-lease.Context().Done():
			return
		default:
		}
		if left <= 0 || !pause(ctx, min(left, look)) {
			return
		}
		if now := w.until(lease); lease.Remaining() > 0 && now > known+time.Millisecond {
			known = now
			w.note(history.Event{Op: history.OpExtend, Outcome: history.OK, Key: lease.Key(), Until: now})
		}
	}
}

// until is when the validity ends. It is read between two looks at the clock that
// are close together: a process that was paused in between would be judged by
// another moment than that for which the answer was.
func (w *worker) until(l *redlock.Lease) time.Duration {
	for {
		before := Now()
		left := l.Remaining()
		if after := Now(); after-before < time.Millisecond {
			if w.Rate != 0 {
				left = time.Duration(float64(left) / w.Rate) // of the machine's time
			}
			return after + left
		}
	}
}

func (w *worker) note(e history.Event) {
	e.At, e.Client, e.Lease = Now(), w.number, w.lease
	if err := history.Write(w.file, e); err != nil {
		fatal(err) // a run with gaps cannot be judged
	}
}
