package redlock

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// busyClock does something whenever a timer of its is set.
type busyClock struct {
	clock.System
	meanwhile func()
}

func (c *busyClock) NewTimer(d time.Duration) clock.Timer {
	return busyTimer{c.System.NewTimer(d), c}
}

type busyTimer struct {
	clock.Timer
	clock *busyClock
}

func (t busyTimer) Reset(d time.Duration) {
	t.Timer.Reset(d)
	t.clock.meanwhile()
}

// A waiter that has served one call wakes the next one for nothing of the first's,
// though that was decided just as its caller gave up, or later.
func TestAWaiterWakesNobodyForAnother(t *testing.T) {
	var c busyClock
	w := newWaiter(&c)
	l := &Locker{core: &core{}}
	l.waiters.New = func() any { return w }
	for range 100 {
		r := newRound(1, acquireOp("k", "t", time.Minute), c.Now())
		done := make(chan struct{})
		c.meanwhile = func() {
			r.answer(0, &plainGrant, r.start)
			close(done)
		}
		l.wait(r, done, nil, time.Minute)
		if len(w.told) > 0 {
			t.Fatal("decided as the wait ended: whoever waits next is woken at once")
		}
		r = newRound(1, r.op, r.start)
		c.meanwhile = func() {}
		l.wait(r, done, nil, time.Minute)
		r.answer(0, &plainGrant, r.start)
		if len(w.told) > 0 {
			t.Fatal("decided after the wait: whoever waits next is woken at once")
		}
	}
}

// Who begins to wait when a round has been decided is not told of it any more, and
// need not be.
func TestARoundTellsOnceThatItHasDecided(t *testing.T) {
	told := make(chan struct{}, 1)
	r := newRound(3, acquireOp("k", "t", time.Minute), clock.System{}.Now())
	if !r.tell(told) {
		t.Fatal("decided without a vote")
	}
	for i := range 3 {
		r.answer(i, &Reply{Vote: quorum.Denied}, r.start)
		if want := min(1, i); len(told) != want {
			t.Errorf("after %d answers it has told %d times, want %d", i+1, len(told), want)
		}
	}
	<-told
	if r.tell(told) || len(told) > 0 {
		t.Error("it can be waited for, though it has been decided")
	}
}

// A release that no node needs to be told of is over before it is waited for, and what
// finish counts afterwards wakes nobody, who would be another's by then.
func TestARoundThatWasOverTellsNobody(t *testing.T) {
	l := newLocker(t, []Node{willing("1"), willing("2"), willing("3")}, Config{})
	told := make(chan struct{}, 1)
	r := newRound(3, releaseOp("k", "t"), l.clock.Now())
	for i := range 3 {
		r.setAside(i)
	}
	if r.tell(told) {
		t.Error("it is to be waited for, though nothing is missing")
	}
	if outcome, _ := r.finish(l.lanes); outcome != quorum.Won {
		t.Errorf("it is %v", outcome)
	}
	if len(told) > 0 {
		t.Error("it has told that it has decided")
	}
}
