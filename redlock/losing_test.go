package redlock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// A holder that looks at its lease at the moment at which the watcher is about to
// finds the loss first. What was promised is over no sooner for that.
func TestALossThatTheHolderFindsFirstShortensNoPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		c := clock.NewSkewed(1)
		leases := map[string]*Lease{}
		var told atomic.Bool
		var found sync.WaitGroup
		first := ""
		found.Add(1)
		l := newLocker(t, nodes, Config{TTL: 10 * time.Second, Clock: c, Trace: &Trace{Lost: func(e LostEvent) {
			if told.Swap(true) {
				return
			}
			// Both are due at once, and the other's holder comes before the watcher.
			first = map[string]string{"j": "k", "k": "j"}[e.Key]
			go func() {
				defer found.Done()
				leases[first].Remaining()
			}()
			found.Wait()
		}}})
		for _, key := range []string{"j", "k"} {
			leases[key] = acquire(t, l, key)
		}
		promised := min(leases["j"].Remaining(), leases["k"].Remaining())
		time.Sleep(time.Second)
		c.Step(time.Hour)
		time.Sleep(promised - time.Second - time.Millisecond)
		synctest.Wait()
		if first == "" {
			t.Fatal("nothing was lost")
		}
		for key, lease := range leases {
			if lease.Remaining() != 0 {
				t.Errorf("%s is not lost", key)
			}
			if on := heldOn(mem, key, lease.Token()); on != 3 {
				t.Errorf("%s is on %d nodes before what was promised is over (found first by its holder: %v)", key, on, key == first)
			}
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		for key, lease := range leases {
			if on := heldOn(mem, key, lease.Token()); on != 0 {
				t.Errorf("%s is on %d nodes afterwards", key, on)
			}
		}
	})
}

// A lease that is just being lost when Close looks for those to release is on no
// node after it either.
func TestCloseMissesNoLeaseThatIsBeingLost(t *testing.T) {
	mem, nodes := memNodes(3)
	c := clock.NewSkewed(1)
	l, err := New(nodes, Config{TTL: 30 * time.Second, NodeTimeout: 7 * time.Second, Clock: c}) // on a busy machine too
	if err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, l, "k")
	for deadline := time.Now().Add(time.Minute); heldOn(mem, "k", lease.Token()) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not on all nodes")
		}
	}
	last := l.lanes[2]
	last.mu.Lock() // whoever loses the lease stops half-way
	told := make(chan struct{})
	c.Step(time.Hour)
	go func() {
		defer close(told)
		lease.Remaining()
	}()
	for deadline := time.Now().Add(time.Minute); lease.reason() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not lost")
		}
	}
	closed := make(chan error)
	go func() { closed <- l.Close(context.Background()) }()
	<-l.closing
	time.Sleep(50 * time.Millisecond) // Close comes as far as it can
	last.mu.Unlock()
	<-told
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if on := heldOn(mem, "k", lease.Token()); on > 0 {
		t.Errorf("after Close it is on %d nodes", on)
	}
}

// Nor is one whose holder releases it at that moment.
func TestCloseMissesNoLeaseThatIsBeingReleased(t *testing.T) {
	for range 3000 {
		mem, nodes := memNodes(1)
		l, err := New(nodes, Config{TTL: 30 * time.Second, NodeTimeout: 7 * time.Second}) // on a busy machine too
		if err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, l, "k")
		done := make(chan error)
		go func() { done <- lease.Release(context.Background()) }()
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-done
		if on := heldOn(mem, "k", lease.Token()); on > 0 {
			t.Fatalf("after Close it is on %d nodes", on)
		}
	}
}
