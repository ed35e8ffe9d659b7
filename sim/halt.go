package sim

import (
	"slices"
	"time"
)

// isHalted reports whether nothing moves in the process.
func (c *client) isHalted() bool { return c != nil && !c.gone && c.paused+c.suspended > 0 }

// wasHalted reports whether the process is halted, or was a moment ago. After a
// suspend, or a step of the clock, a loss is told a tick late at most, and whoever
// asks before is told by the clock.
func (c *client) wasHalted() bool {
	return c.isHalted() || c.resumed != 0 && c.world.now-c.resumed < 110*time.Millisecond
}

// halt stops the process, and with suspend its monotonic clock. world.mu is held.
func (c *client) halt(suspend bool) {
	w := c.world
	if c.paused+c.suspended == 0 {
		c.since = w.now
	}
	if !suspend {
		c.paused++
		return
	}
	if c.suspended == 0 {
		c.rests = w.now
		c.clock.SetRate(1e-9)
	}
	c.suspended++
}

// resume ends one halt. What has come meanwhile is dealt with in any order.
func (c *client) resume(suspend bool) {
	w := c.world
	if suspend {
		if c.suspended--; c.suspended == 0 {
			c.clock.SetRate(c.clock.rate)
			c.oversleep()
		}
	} else {
		c.paused--
	}
	if c.paused+c.suspended > 0 {
		return
	}
	c.away += w.now - c.since
	c.resumed = w.now
	// What was due at one moment comes at one moment, since timers that were set
	// together cannot be told apart.
	held := c.held
	c.held = nil
	for _, e := range held {
		d := w.dice.on(forResume, uint64(c.id), uint64(w.now), uint64(e.at))
		e.at = max(e.at, w.now+d.between(time.Nanosecond, 20*time.Microsecond))
		w.agenda.set(e)
	}
}

// oversleep has the process's clocks count the time for which its machine has been
// suspended, and its timers leave it out.
func (c *client) oversleep() {
	w := c.world
	slept := w.now - c.rests
	c.rests = w.now
	c.jumps = append(c.jumps, jump{w.now, slept})
	c.clock.Suspend(time.Duration(float64(slept) * c.clock.rate))
	for _, e := range slices.Clone(w.agenda) {
		if e.timer && e.whose == c {
			e.at += slept
			w.agenda.set(e)
		}
	}
	for _, e := range c.held {
		if e.timer {
			e.at += slept
		}
	}
}

// unhold takes back an event that waits for the process to go on.
func (c *client) unhold(e *event) {
	c.held = slices.DeleteFunc(c.held, func(o *event) bool { return o == e })
}
