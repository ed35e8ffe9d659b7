// Package clock owns time and how wrong it may be.
//
// A lease rests on elapsed time, and no single clock of a machine is right
// about it: Go's monotonic clock stops while the machine is suspended, the boot
// clock does not, and the wall clock is stepped by people and by time daemons.
// So an [Instant] holds all of them, and elapsed time has two readings:
// [Instant.Upper] for whatever must not be under-measured (how much of a
// validity is used up, whether a lease is lost), and [Instant.Lower] for
// whatever must not be over-measured (whether a key has surely gone from a node
// that has been out of sight). Confusing the two is unsafe.
package clock

import "time"

// Clock is where a lock takes its time from. Its methods may be called
// concurrently.
type Clock interface {
	// Now reads the clocks.
	Now() Instant
	// NewTimer returns a timer that fires once after d. A timer may fire
	// late, and one that was set before a suspend fires after it; it is for
	// waking up, never for deciding: who is woken reads Now.
	NewTimer(d time.Duration) Timer
}

// Timer is a timer of a [Clock]. As with [time.Timer], a Stop or Reset that
// has returned leaves no stale value in the channel.
type Timer interface {
	// C receives once when the timer fires.
	C() <-chan time.Time
	// Reset makes the timer fire after d from now.
	Reset(d time.Duration)
	// Stop prevents the timer from firing.
	Stop()
}

// Instant is one moment as the clocks of one machine saw it. Instants of
// different machines, or of different Clocks, cannot be compared. The zero
// Instant is no moment.
type Instant struct {
	at   time.Time     // wall clock and Go's monotonic reading
	boot time.Duration // boot clock, which counts suspended time; 0 where there is none
	slip time.Duration // what a Skewed clock's wall has been stepped by
}

// Upper is an upper bound of the time that went by from since to t: the
// largest of what the monotonic clock, the boot clock and the wall clock say.
// A wall clock stepped forward lengthens it, one stepped back changes nothing.
func (t Instant) Upper(since Instant) time.Duration {
	wall := t.at.Round(0).Sub(since.at.Round(0)) + t.slip - since.slip
	return max(t.Lower(since), t.boot-since.boot, wall)
}

// Lower is a lower bound of the time that went by from since to t: what the
// monotonic clock says, which neither a step nor a suspend lengthens.
func (t Instant) Lower(since Instant) time.Duration {
	return t.at.Sub(since.at)
}

// Wall is the wall clock's reading. It is for showing to people and for
// telling others, never for measuring.
func (t Instant) Wall() time.Time {
	return t.at.Round(0).Add(t.slip)
}

// IsZero reports whether t is the zero Instant.
func (t Instant) IsZero() bool {
	return t.at.IsZero()
}

// System is the machine's clock. On Linux it also reads CLOCK_BOOTTIME, so a
// suspend counts as elapsed time even if the wall clock is stepped back
// afterwards (more than 10 ms later); elsewhere it rests on the wall clock for
// that. The zero value is ready to use. Inside a testing/synctest bubble, where
// the boot clock is real and the other two are not, use a [Skewed] one.
type System struct{}

// Now implements [Clock].
func (System) Now() Instant {
	now := time.Now()
	return Instant{at: now, boot: boottime(now)}
}

// NewTimer implements [Clock].
func (System) NewTimer(d time.Duration) Timer {
	return stdTimer{time.NewTimer(d)}
}

type stdTimer struct{ t *time.Timer }

func (t stdTimer) C() <-chan time.Time   { return t.t.C }
func (t stdTimer) Reset(d time.Duration) { t.t.Reset(d) }
func (t stdTimer) Stop()                 { t.t.Stop() }
