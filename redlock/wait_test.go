package redlock

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// A waiter that has served one call wakes the next one for nothing of the first's,
// though that was decided just as its caller gave up, or later.
func TestAWaiterWakesNobodyForAnother(t *testing.T) {
	l := newLocker(t, []Node{willing("node")}, Config{})
	fresh := func() {
		t.Helper()
		w := l.waiters.Get().(*waiter)
		defer l.waiters.Put(w)
		if len(w.told) > 0 {
			t.Fatal("whoever waits next is woken at once")
		}
	}
	for range 5000 {
		soon := newRound(1, acquireOp("k", "t", time.Minute), clock.System{}.Now())
		late := newRound(1, soon.op, soon.start)
		done := make(chan struct{})
		go func() {
			soon.answer(0, &plainGrant, soon.start)
			close(done)
		}()
		l.wait(soon, done, nil, time.Minute)
		<-done
		fresh()
		l.wait(late, done, nil, time.Minute)
		late.answer(0, &plainGrant, late.start)
		fresh()
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
