package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// work is what a client's one goroutine does: what the script says, or else a few
// things at random.
func (c *client) work() {
	w := c.world
	if w.plan.Script != nil {
		c.follow()
		return
	}
	d := w.dice.on(forWork, uint64(c.id))
	c.sleep(d.between(0, 2*w.plan.Think))
	for acts := 0; acts < w.plan.Acts && !c.done(); acts++ {
		c.act(&d)
		c.sleep(d.between(time.Microsecond, 2*w.plan.Think))
	}
}

// isGone reports whether the process has crashed.
func (c *client) isGone() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.gone
}

// done reports whether the worker is to begin nothing more.
func (c *client) done() bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.gone || c.world.now > c.world.plan.Length
}

// act is a lease from its beginning to its end, or the attempt to get one.
func (c *client) act(d *dice) {
	p := &c.world.plan
	name := keyName(d.below(p.Keys))
	locker, timeout := c.locker, p.nodeTimeout(p.TTL)
	if d.chance(0.12) {
		ttl := max(d.between(p.TTL/4, p.MaxTTL), 4*p.Timeout)
		view, err := locker.WithTTL(ttl)
		if err != nil {
			panic(err)
		}
		locker, timeout = view, p.nodeTimeout(ttl)
	}
	patience := d.about(500*time.Microsecond, p.beat()*3/2)
	if d.chance(0.5) { // most calls are not cut short
		patience += 2 * timeout
	}
	ctx, cancel := c.within(patience)
	defer cancel()
	switch d.below(5) {
	case 0:
		c.timed("Do", -1, func() error {
			began := c.world.clockNow()
			return locker.Do(ctx, name, func(_ context.Context, lease *redlock.Lease) error {
				h := c.won(lease, name, began, timeout)
				h.kept, h.long = true, d.chance(p.Long)
				c.hold(d, h)
				if d.chance(0.1) {
					c.release(h)
				}
				c.releasing(h)
				return nil
			})
		})
	case 1, 2:
		c.keep(d, name, timeout, patience+timeout, func() (*redlock.Lease, error) { return locker.Acquire(ctx, name) })
	default:
		c.keep(d, name, timeout, min(patience, timeout), func() (*redlock.Lease, error) { return locker.TryAcquire(ctx, name) })
	}
}

// keep gets a lease, has it for a while and gives it back, or not.
func (c *client) keep(d *dice, name string, timeout, limit time.Duration, get func() (*redlock.Lease, error)) {
	began := c.world.clockNow()
	var lease *redlock.Lease
	if began-c.born < dialTimeout { // the first connections are waited for
		limit += dialTimeout
	}
	err := c.timed("acquire", limit, func() (err error) {
		lease, err = get()
		return err
	})
	if err != nil {
		return
	}
	h := c.won(lease, name, began, timeout)
	h.long = d.chance(c.world.plan.Long)
	c.pause(d)
	if d.chance(0.25) || h.long {
		h.kept = true
		lease.KeepAlive()
	}
	c.hold(d, h)
	if !h.kept && d.chance(0.15) {
		return // it is forgotten, and runs out
	}
	c.release(h)
	if d.chance(0.1) {
		c.pause(d)
		if err := lease.Release(context.Background()); !errors.Is(err, redlock.ErrReleased) && !c.done() {
			c.violates("a second Release says %v", err)
		}
	}
}

// hold has a lease for a while, and extends it now and then.
func (c *client) hold(d *dice, h *hold) {
	p := &c.world.plan
	span := d.about(50*time.Microsecond, p.beat()/4)
	switch {
	case d.chance(0.15) && !h.long:
		span = d.between(0, p.beat())
	case d.chance(0.1):
		span = p.beat() + d.between(0, p.beat()/10)
	case h.long:
		span = d.between(p.beat()/2, 4*p.beat())
	}
	for n := d.below(3); n >= 0; n-- {
		c.sleepUnlessLost(d.between(0, 2*span/time.Duration(n+1)), h)
		if n == 0 || !c.holds(h) {
			return
		}
		ttl := d.between(p.TTL/4, p.MaxTTL).Truncate(time.Millisecond)
		patience := d.about(100*time.Microsecond, 2*h.timeout)
		ctx, cancel := c.within(patience)
		err := c.timed("extend", min(patience, h.timeout), func() error { return h.lease.Extend(ctx, ttl) })
		cancel()
		c.pause(d)
		if errors.Is(err, redlock.ErrLost) && h.lease.Remaining() > 0 {
			c.violates("Extend says lost, and the lease is held")
		}
	}
}

// release gives a lease back.
func (c *client) release(h *hold) {
	c.releasing(h)
	err := c.timed("release", h.timeout, func() error { return h.lease.Release(context.Background()) })
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !c.gone {
		w.judge.released(h)
	}
}

// pause lets the library's own goroutines come to rest before the worker goes on.
func (c *client) pause(d *dice) { c.sleep(d.between(1, 20*time.Microsecond)) }

// timed makes a call, and checks how long it took, by the process's clock and
// without the time in which it was halted. A negative limit is none.
func (c *client) timed(what string, limit time.Duration, call func() error) error {
	w := c.world
	w.mu.Lock()
	began, away := w.now, c.away
	w.mu.Unlock()
	err := call()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.gone {
		return errHungUp
	}
	took := w.now - began - (c.away - away)
	w.trace.add(trResult, uint64(c.id), hashOf(what), class(err))
	w.say("%s %s: %v (after %v)", c.name, what, err, took)
	// A hundredth for a clock whose rate has changed, and what it may take to go on
	// after a halt.
	if limit >= 0 && c.clock.real(limit)*101/100+50*time.Microsecond < took && w.plan.Timely {
		w.violates("%s: %s took %v, want %v at most", c.name, what, took, limit)
	}
	return err
}

// won registers a lease.
func (c *client) won(lease *redlock.Lease, name string, began, timeout time.Duration) *hold {
	left := lease.Remaining()
	token, digest, fence := lease.Token(), lease.Token().Digest(), lease.Fence()
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &hold{
		client: c, lease: lease, name: name, token: token, digest: digest, fence: fence,
		began: began, from: w.now, left: left, timeout: timeout,
	}
	if !c.gone {
		w.judge.granted(h)
	}
	return h
}

// releasing notes that a lease is about to be released.
func (c *client) releasing(h *hold) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.releasing(h)
}

// holds reports whether the worker has not heard that it has lost a lease.
func (c *client) holds(h *hold) bool {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return !c.gone && h.lost == 0
}

func (c *client) violates(format string, args ...any) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.gone {
		w.violates(c.name+": "+format, args...)
	}
}

// clockNow is the time of the world, for workers.
func (w *world) clockNow() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// classes are what errors can be.
var classes = []error{
	redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrTooSlow, redlock.ErrLost, redlock.ErrReleased,
	redlock.ErrClosed, context.DeadlineExceeded, context.Canceled,
}

const classOther = 99

// class is an error as the trace has it: what it is, not how it is worded.
func class(err error) uint64 {
	for i, is := range classes {
		if errors.Is(err, is) {
			return uint64(i + 1)
		}
	}
	if err != nil {
		return classOther
	}
	return 0
}

func keyName(i int) string { return "k" + string(rune('0'+i)) }
