package sim

import (
	"math"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// processClock is the clock of one client's process. It is a skewed one that follows
// the time of the world, which stands still while goroutines run; its timers are events of the world, so they fire one at a time, not while the
// process is paused, and stand still while its machine is suspended.
type processClock struct {
	*clock.Skewed
	client *client
	rate   float64
}

func newProcessClock(c *client) *processClock {
	w := c.world
	return &processClock{clock.NewSkewedOn(func() time.Time { return w.start.Add(w.now) }, 1), c, 1}
}

// real is how long the clock takes to count d, rounded up as in a Skewed one.
func (p *processClock) real(d time.Duration) time.Duration {
	if p.rate == 1 {
		return d
	}
	return time.Duration(math.Ceil(float64(d) / p.rate))
}

// NewTimer implements clock.Clock.
func (p *processClock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: p, fired: make(chan time.Time, 1)}
	t.event = event{whose: p.client, timer: true, rank: p.client.rank(rankTimer), do: func() { t.fired <- time.Time{} }}
	t.Reset(d)
	return t
}

type timer struct {
	clock *processClock
	event event
	fired chan time.Time
}

func (t *timer) C() <-chan time.Time { return t.fired }

func (t *timer) Reset(d time.Duration) {
	w := t.clock.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	t.clear()
	t.event.at = w.now + max(1, t.clock.real(d))
	w.agenda.set(&t.event)
}

func (t *timer) Stop() {
	w := t.clock.client.world
	w.mu.Lock()
	defer w.mu.Unlock()
	t.clear()
	w.agenda.drop(&t.event)
}

// clear leaves no stale value, nor one that waits for the process to go on.
// world.mu is held.
func (t *timer) clear() {
	t.clock.client.unhold(&t.event)
	select {
	case <-t.fired:
	default:
	}
}
