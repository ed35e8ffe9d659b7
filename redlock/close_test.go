package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

func TestCloseReleasesEverythingAndLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		mem, nodes := memNodes(5)
		l, err := New(nodes, Config{Clock: clock.NewSkewed(1)})
		if err != nil {
			t.Fatal(err)
		}
		var leases []*Lease
		for i := range 300 {
			lease := acquire(t, l, fmt.Sprint(i))
			if i%2 == 0 {
				lease.KeepAlive()
			}
			leases = append(leases, lease)
		}
		held := leases[0].Context()
		waiting := make(chan error)
		go func() {
			_, err := l.Acquire(context.Background(), "0")
			waiting <- err
		}()
		doing := make(chan error)
		go func() {
			doing <- l.Do(context.Background(), "do", func(ctx context.Context, _ *Lease) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		synctest.Wait()

		if err := l.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-waiting; !errors.Is(err, ErrClosed) {
			t.Errorf("a waiter got %v, want ErrClosed", err)
		}
		if err := <-doing; !errors.Is(err, ErrClosed) {
			t.Errorf("Do got %v, want ErrClosed", err)
		}
		if err := context.Cause(held); !errors.Is(err, ErrClosed) {
			t.Errorf("a lease's context ended with %v, want ErrClosed", err)
		}
		for _, lease := range leases {
			if lease.Remaining() != 0 {
				t.Fatal("a lease is held after close")
			}
			if err := lease.Release(t.Context()); !errors.Is(err, ErrReleased) {
				t.Fatalf("release after close: %v", err)
			}
		}
		for _, n := range mem {
			if n.size() != 0 || n.open() != 0 {
				t.Errorf("%s: %d keys, %d connections", n, n.size(), n.open())
			}
		}
		synctest.Wait()
		if n := goroutines(); n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
		for name, call := range map[string]func() error{
			"TryAcquire": func() error { _, err := l.TryAcquire(t.Context(), "k"); return err },
			"Acquire":    func() error { _, err := l.Acquire(t.Context(), "k"); return err },
			"Inspect":    func() error { _, err := l.Inspect(t.Context(), "k"); return err },
			"Do":         func() error { return l.Do(t.Context(), "k", func(context.Context, *Lease) error { return nil }) },
		} {
			if err := call(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s after close: %v", name, err)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}

func TestCloseWaitsForNodesThatAreAwayAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l, err := New(nodes, Config{Clock: clock.NewSkewed(1), TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		acquire(t, l, "a")
		acquire(t, l, "b")
		synctest.Wait()
		takeDown(mem[:1], errors.New("connection refused"))
		time.Sleep(6 * time.Second) // it is noticed

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err = l.Close(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want until ctx was done", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "n1: 2 keys may be left, for at most 10s") {
			t.Errorf("got %v", err)
		}
		again := l.Close(t.Context())
		if again == nil || again.Error() != err.Error() {
			t.Errorf("closed again: %v, want the same", again)
		}
	})
}

func TestCloseSettlesWithANodeThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l, err := New(nodes, Config{Clock: clock.NewSkewed(1), TTL: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		acquire(t, l, "a")
		synctest.Wait()
		resume := mem[0].stop()
		time.AfterFunc(8*time.Second, resume)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if mem[0].size() != 0 {
			t.Error("the key is left")
		}
	})
}

// A node that is away is waited for until what it may hold has expired, not
// for ever.
func TestCloseWithoutDeadlineEnds(t *testing.T) {
	for name, spoil := range badNodes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l, err := New(nodes, Config{Clock: clock.NewSkewed(1), TTL: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for _, n := range mem {
					spoil(n)
				}
				l.TryAcquire(t.Context(), "a")
				began := time.Now()
				l.Close(context.WithoutCancel(t.Context()))
				if took := time.Since(began); took > 16*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestCloseOfALockerThatNeverConnectedIsQuick(t *testing.T) {
	for name, spoil := range badNodes() {
		if name == "errors" || name == "slow" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				for _, n := range mem {
					spoil(n)
				}
				l, err := New(nodes, Config{Clock: clock.NewSkewed(1)})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > laterPause {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestViewsShareOneLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		short, err := l.WithTTL(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, short, "k")
		if got := lease.Remaining(); got != 988*time.Millisecond {
			t.Errorf("remaining %v, want 988ms", got)
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		lease.Release(t.Context())
		synctest.Wait()
		if mem[0].open() != 1 {
			t.Errorf("%d connections, want one", mem[0].open())
		}
		for _, ttl := range []time.Duration{0, -1, time.Microsecond, time.Millisecond, 31 * time.Second} {
			if _, err := l.WithTTL(ttl); !errors.Is(err, ErrInvalid) {
				t.Errorf("WithTTL(%v): %v, want ErrInvalid", ttl, err)
			}
		}
		slow := newLocker(t, nodes[:1], Config{NodeTimeout: time.Second})
		if _, err := slow.WithTTL(3 * time.Second); !errors.Is(err, ErrInvalid) {
			t.Errorf("a NodeTimeout of 1s with a TTL of 3s: %v, want ErrInvalid", err)
		}
	})
}
