package clock

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Skewed is a Clock that is wrong in a known way, for tests and simulations.
// It follows package time unless told otherwise, so inside a testing/synctest bubble it is as virtual
// as the bubble; it can run fast or slow, its wall clock can be stepped, and it
// can be suspended. Its methods may be called concurrently.
type Skewed struct {
	now func() time.Time // the time it follows

	mu        sync.Mutex // guards what follows
	rate      float64
	turned    time.Time     // when rate took effect, in the time it follows
	elapsed   time.Duration // what the monotonic clock had counted by then
	wall      time.Duration // all steps of the wall clock
	suspended time.Duration // all suspended time
}

// epoch is what a Skewed clock's monotonic reading counts from. Only
// differences of it are ever seen.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// NewSkewed returns a clock whose monotonic clock runs at rate times real
// time: 1 is right, 1.01 is one percent fast. It panics when rate is not
// positive.
func NewSkewed(rate float64) *Skewed {
	return NewSkewedOn(time.Now, rate)
}

// NewSkewedOn is NewSkewed for a simulation that has a time of its own, which now
// tells and which never goes back. The clock's readings follow that; its timers
// are package time's.
func NewSkewedOn(now func() time.Time, rate float64) *Skewed {
	c := &Skewed{now: now, turned: now()}
	c.setRate(rate)
	return c
}

// SetRate changes the rate from now on. It panics when rate is not positive.
// Timers that are already set keep the rate they were set with.
func (c *Skewed) SetRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.elapsed += c.at(now.Sub(c.turned))
	c.turned = now
	c.setRate(rate)
}

func (c *Skewed) setRate(rate float64) {
	if !(rate > 0) {
		panic(fmt.Sprintf("clock: rate %v is not positive", rate))
	}
	c.rate = rate
}

// Step moves the wall clock by d, which may be negative. No other clock moves.
func (c *Skewed) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
}

// Suspend makes the clock look as if the machine had just slept for d: wall
// and boot clock go on by d, the monotonic clock does not.
func (c *Skewed) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
	c.suspended += d
}

// Now implements [Clock].
func (c *Skewed) Now() Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.elapsed + c.at(c.now().Sub(c.turned))
	return Instant{at: epoch.Add(elapsed), boot: elapsed + c.suspended, slip: c.wall}
}

// NewTimer implements [Clock]: a timer of d on this clock.
func (c *Skewed) NewTimer(d time.Duration) Timer {
	return skewedTimer{time.NewTimer(c.real(d)), c}
}

// at is what this clock counts while real goes by.
func (c *Skewed) at(real time.Duration) time.Duration {
	if c.rate == 1 {
		return real
	}
	return time.Duration(float64(real) * c.rate)
}

// real is how long this clock takes to count d.
func (c *Skewed) real(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rate == 1 {
		return d
	}
	// Rounded up: a timer that fired before this clock had counted d would be
	// set again for what is missing, for ever if that is nothing in real time.
	return time.Duration(math.Ceil(float64(d) / c.rate))
}

type skewedTimer struct {
	t     *time.Timer
	clock *Skewed
}

func (t skewedTimer) C() <-chan time.Time   { return t.t.C }
func (t skewedTimer) Reset(d time.Duration) { t.t.Reset(t.clock.real(d)) }
func (t skewedTimer) Stop()                 { t.t.Stop() }
