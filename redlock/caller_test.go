package redlock

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A Backoff that panics, or ends its goroutine, costs its own caller the lock,
// and nobody else's turn.
func TestABackoffThatPanicsDoesNotKeepTheTurn(t *testing.T) {
	for name, fall := range map[string]func(){
		"panic":  func() { panic("backoff") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{Backoff: func(int) time.Duration { fall(); return 0 }})
				steal(mem)
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { recover() }()
					l.Acquire(context.Background(), "k")
				}()
				<-done
				vanish(mem)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := l.Acquire(ctx, "k"); err != nil {
					t.Errorf("the key is free, and nobody of this process tries: %v", err)
				}
			})
		})
	}
}

// A hook that panics is its owner's bug, but a lock that is left behind is
// everybody's.
func TestAnAcquiredHookThatPanicsDoesNotKeepTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{Trace: &Trace{Acquired: func(AcquireEvent) { panic("hook") }}})
		func() {
			defer func() { recover() }()
			l.Do(t.Context(), "k", func(context.Context, *Lease) error { return nil })
		}()
		synctest.Wait()
		if mem[0].size() != 0 {
			t.Error("the lock stays until its TTL, and nobody has the lease")
		}
	})
}

// Everything that fn may do to its Locker while it holds the lock ends.
func TestFnMayCallBackIntoItsLocker(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *Locker, lease *Lease) error{
		"close": func(ctx context.Context, l *Locker, _ *Lease) error { return l.Close(context.WithoutCancel(ctx)) },
		"try": func(ctx context.Context, l *Locker, _ *Lease) error {
			if _, err := l.TryAcquire(ctx, "k"); !errors.Is(err, ErrHeld) {
				return err
			}
			return nil
		},
		"other key": func(ctx context.Context, l *Locker, _ *Lease) error {
			return l.Do(ctx, "other", func(context.Context, *Lease) error { return nil })
		},
		"inspect": func(ctx context.Context, l *Locker, _ *Lease) error { _, err := l.Inspect(ctx, "k"); return err },
		"release and again": func(ctx context.Context, l *Locker, lease *Lease) error {
			if err := lease.Release(ctx); err != nil {
				return err
			}
			return l.Do(context.WithoutCancel(ctx), "k", func(context.Context, *Lease) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				l := newLocker(t, nodes, Config{})
				began := time.Now()
				err := l.Do(t.Context(), "k", func(ctx context.Context, lease *Lease) error { return call(ctx, l, lease) })
				if err != nil && !(name == "close" && errors.Is(err, ErrClosed)) {
					t.Error(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				synctest.Wait()
				if mem[0].size() != 0 {
					t.Error("a key is left")
				}
			})
		})
	}
}
