package redlock

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// keeper watches over all leases of a Locker: it ends each before its validity
// does, and has those that are kept alive renewed.
//
// It sleeps until the next lease is due on the monotonic clock. That clock is
// not the one that validity is counted by, so at every tick it works out all
// leases anew: after a suspend, or a step of the wall clock, a lease is ended a
// tick late at most.
type keeper struct {
	clock clock.Clock
	born  clock.Instant
	wake  chan struct{} // capacity 1

	mu     sync.Mutex // guards what follows, and each lease's watched
	due    dueHeap
	tick   time.Duration
	next   time.Duration // when it wakes up by itself
	plans  time.Duration // when it works out all leases anew
	ending bool
}

const maxTick = 100 * time.Millisecond

// watched is a lease as its keeper knows it.
type watched struct {
	index int // in the heap, plus one; 0 if it is not watched
	start clock.Instant
	span  time.Duration // to the lease's end, counted from start
	renew time.Duration // to its renewal, counted from start; 0 if it is not renewed
	due   time.Duration // on the keeper's clock
	lost  bool          // what it has left on the nodes is due
}

func newKeeper(c clock.Clock) *keeper {
	return &keeper{clock: c, born: c.Now(), wake: make(chan struct{}, 1), tick: maxTick}
}

// add watches over a lease that was just won.
func (k *keeper) add(l *Lease, now clock.Instant) { k.set(l, now, true) }

// update takes note of a lease's new end or renewal.
func (k *keeper) update(l *Lease, now clock.Instant) { k.set(l, now, false) }

func (k *keeper) set(l *Lease, now clock.Instant, isNew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.mu.Lock() // inside k.mu, so that no older picture comes after a newer one
	w := watched{start: l.start, span: l.span - notice(l.locker.ttl), renew: l.renewAfter(now)}
	ended := l.ended != nil
	l.mu.Unlock()
	if ended || !isNew && l.watched.index == 0 {
		return
	}
	k.tick = min(k.tick, l.tick())
	w.index = l.watched.index
	l.watched = w
	k.plan(l, now)
	if w.index == 0 {
		heap.Push(&k.due, l)
	} else {
		heap.Fix(&k.due, w.index-1)
	}
	if l.watched.due < k.next || k.next == 0 {
		k.rouse()
	}
}

// tick is how late the end of the lease may be noticed after a suspend.
func (l *Lease) tick() time.Duration { return max(time.Millisecond, l.locker.ttl/20) }

// plan works out when a lease is due: validity is counted by the upper reading,
// sleeping by the lower one. k.mu is held.
func (k *keeper) plan(l *Lease, now clock.Instant) {
	w := &l.watched
	if w.lost {
		return
	}
	left := w.span
	if w.renew > 0 {
		left = min(left, w.renew)
	}
	w.due = now.Lower(k.born) + left - now.Upper(w.start)
}

// bury keeps a lease that was lost until all that its holder was ever promised is
// over by the slowest reading, and then has it undone. Until then the nodes keep it,
// in favour of a holder who has looked at Remaining and not at Context.
// It is watched all the while, so that Close does not miss it.
func (k *keeper) bury(l *Lease, now clock.Instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.mu.Lock()
	left, released := l.promised-now.Lower(l.won), l.released
	l.mu.Unlock()
	if released {
		return // meanwhile, and whoever did so ends the watch
	}
	l.watched = watched{index: l.watched.index, due: now.Lower(k.born) + max(0, left), lost: true}
	if l.watched.index == 0 {
		heap.Push(&k.due, l)
	} else {
		heap.Fix(&k.due, l.watched.index-1)
	}
	k.rouse()
}

// isOver reports whether l was lost and all that its holder was ever promised is over.
func (l *Lease) isOver(now clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.released && l.promised <= now.Lower(l.won)
}

// remove ends the watch over a lease.
func (k *keeper) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := l.watched.index; i > 0 {
		heap.Remove(&k.due, i-1)
	}
}

// all lists the leases that are watched.
func (k *keeper) all() []*Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*Lease(nil), k.due...)
}

// close has run return.
func (k *keeper) close() {
	k.mu.Lock()
	k.ending = true
	k.mu.Unlock()
	k.rouse()
}

func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run watches until close. The Locker waits for it.
func (k *keeper) run() {
	timer := k.clock.NewTimer(maxTick)
	defer timer.Stop()
	for {
		now := k.clock.Now()
		due, wait, ending := k.look(now)
		if ending {
			return
		}
		for _, l := range due {
			l.attend(now)
		}
		var fired <-chan time.Time // with no lease to watch it sleeps until one comes
		if wait > 0 {
			timer.Reset(wait)
			fired = timer.C()
		}
		select {
		case <-fired:
		case <-k.wake:
		}
	}
}

// look returns the leases that are due, and how long to sleep until more are; 0
// if there is nothing to watch.
func (k *keeper) look(now clock.Instant) (due []*Lease, wait time.Duration, ending bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.due) == 0 {
		k.next = 0
		return nil, 0, k.ending
	}
	at := now.Lower(k.born)
	if at >= k.plans {
		k.tick = maxTick
		for _, l := range k.due {
			k.plan(l, now)
			k.tick = min(k.tick, l.tick())
		}
		heap.Init(&k.due)
		k.plans = at + k.tick
	}
	for k.due[0].watched.due <= at {
		due = append(due, k.due[0])
		k.due[0].watched.due = at + k.tick // until it has been attended to
		heap.Fix(&k.due, 0)
	}
	wait = max(1, min(k.due[0].watched.due, k.plans)-at)
	k.next = at + wait
	return due, wait, k.ending
}

// attend does what is due for a lease.
func (l *Lease) attend(now clock.Instant) {
	if l.reason() != nil {
		// It may have been due for something else, and lost only since it was found to be.
		if l.isOver(now) {
			l.undo()
			l.locker.keeper.remove(l)
		}
		return
	}
	if l.check(now) == 0 {
		return
	}
	l.mu.Lock()
	after := l.renewAfter(now)
	renew := after > 0 && now.Upper(l.start) >= after && l.locker.begin()
	l.renewing = l.renewing || renew
	l.mu.Unlock()
	l.locker.keeper.update(l, now)
	if renew {
		l.locker.group.Go(func() error {
			defer l.locker.finish()
			l.renew()
			return nil
		})
	}
}

// KeepAlive renews the lease when a third of its TTL is used up, until it is released or
// lost, or Config.MaxHold has passed since it was acquired; then it runs out. A
// renewal that fails is tried again, as long as the lease is held: at once where nodes
// refuse or cannot be reached, and after a tenth of the TTL where a majority does not
// answer. KeepAlive returns at once, and may be called again.
func (l *Lease) KeepAlive() {
	if l.none() {
		return
	}
	l.mu.Lock()
	l.kept = true
	l.mu.Unlock()
	l.locker.keeper.update(l, l.locker.clock.Now())
}

// renewAfter is when to renew the lease, counted from its start; 0 if it is not
// to be renewed, or is being. l.mu is held.
func (l *Lease) renewAfter(now clock.Instant) time.Duration {
	if !l.kept || l.renewing || l.outlived(now) {
		return 0
	}
	// Two thirds of a TTL before the end, which an Extend may have put far off;
	// but never at once, however much of a short TTL is the drift's.
	return max(l.span/3, l.span-2*l.locker.ttl/3)
}

func (l *Lease) outlived(now clock.Instant) bool {
	return l.locker.cfg.MaxHold > 0 && now.Upper(l.won) >= l.locker.cfg.MaxHold
}

// renew extends the lease, trying again until it succeeds or the lease ends. It
// waits longer for answers than callers do, who wait themselves: where nodes are too
// busy to answer in time, to ask them again would only make them busier, until many
// leases have run out. Between tries it does not pause for long: what was not sent in
// time has lost its place in the queues, and is due before leases that were renewed
// meanwhile.
func (l *Lease) renew() {
	ctx := l.Context()
	defer func() {
		l.mu.Lock()
		l.renewing = false
		l.mu.Unlock()
		l.locker.keeper.update(l, l.locker.clock.Now())
	}()
	for ctx.Err() == nil && !l.outlived(l.locker.clock.Now()) {
		if l.extend(context.WithoutCancel(ctx), l.locker.ttl, true) == nil {
			return
		}
		if clock.Sleep(ctx, l.locker.clock, min(l.locker.nodeTimeout, l.locker.ttl/20)) != nil {
			return
		}
	}
}

// dueHeap orders leases by when they are due.
type dueHeap []*Lease

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].watched.due < h[j].watched.due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].watched.index, h[j].watched.index = i+1, j+1
}
func (h *dueHeap) Push(x any) {
	l := x.(*Lease)
	*h = append(*h, l)
	l.watched.index = len(*h)
}
func (h *dueHeap) Pop() any {
	old := *h
	n := len(old) - 1
	l := old[n]
	old[n] = nil
	*h = old[:n]
	l.watched.index = 0
	return l
}
