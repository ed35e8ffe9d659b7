package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// bounded runs a call and checks how long it took.
func (s *soak) bounded(what string, limit, nodeTimeout time.Duration, call func()) {
	began := time.Now()
	call()
	if took := time.Since(began); took > limit+nodeTimeout+50*time.Millisecond {
		s.t.Errorf("%s took %v, want %v at most and a node's timeout, %v", what, took, limit, nodeTimeout)
	}
}

// act is one thing that a worker does.
func (s *soak) act(l *Locker, rng *rand.Rand) {
	key := fmt.Sprint("k", rng.IntN(2))
	timeout := time.Duration(1+rng.IntN(400)) * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if rng.IntN(10) == 0 {
		var view *Locker
		var err error
		ttl := time.Duration(50+rng.IntN(5900)) * time.Millisecond
		if view, err = l.WithTTL(max(ttl, 4*l.cfg.NodeTimeout)); err != nil {
			s.t.Error(err)
			return
		}
		l = view
	}
	var lease *Lease
	var err error
	begun := time.Now()
	switch rng.IntN(5) {
	case 0, 1:
		s.bounded("TryAcquire", timeout, l.nodeTimeout, func() { lease, err = l.TryAcquire(ctx, key) })
	case 2, 3:
		s.bounded("Acquire", timeout, l.nodeTimeout, func() { lease, err = l.Acquire(ctx, key) })
	case 4:
		s.bounded("Do", timeout+l.nodeTimeout, l.nodeTimeout, func() {
			err = l.Do(ctx, key, func(ctx context.Context, lease *Lease) error {
				s.won(key, lease, begun)
				if rng.IntN(4) == 0 {
					lease.Release(context.Background())
				}
				clock.Sleep(ctx, l.clock, time.Duration(rng.IntN(80))*time.Millisecond)
				return nil
			})
		})
		s.failed(err)
		return
	}
	s.failed(err)
	if err != nil {
		if lease != nil {
			s.t.Error("a lease came with an error")
		}
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		return
	}
	s.won(key, lease, begun)
	kept := rng.IntN(3) == 0
	if kept {
		lease.KeepAlive()
	}
	for range rng.IntN(4) {
		time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
		ttl := l.ttl
		if !kept {
			ttl = time.Duration(10+rng.IntN(3000)) * time.Millisecond
		}
		ectx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(60))*time.Millisecond)
		s.bounded("Extend", 60*time.Millisecond, l.nodeTimeout, func() { err = lease.Extend(ectx, ttl) })
		cancel()
		s.failed(err)
		if errors.Is(err, ErrLost) && lease.Remaining() > 0 {
			s.t.Error("Extend said lost, and the lease is held")
		}
	}
	if rng.IntN(8) == 0 && !kept { // until it runs out, to the end
		for left := lease.Remaining(); left > 0; left = lease.Remaining() {
			s.judge()
			time.Sleep(left/2 + 50*time.Microsecond)
		}
	}
	s.bounded("Release", 0, l.nodeTimeout, func() { err = lease.Release(ctx) })
	s.failed(err)
	if lease.Remaining() != 0 {
		s.t.Error("held after its release")
	}
}

func (s *soak) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "ok"
	switch {
	case err == nil:
	case errors.Is(err, ErrHeld):
		kind = "held"
	case errors.Is(err, ErrLost):
		kind = "lost"
	case errors.Is(err, ErrNoQuorum):
		kind = "no quorum"
	case errors.Is(err, context.DeadlineExceeded):
		kind = "deadline"
	case errors.Is(err, ErrTooSlow):
		kind = "too slow"
	case errors.Is(err, ErrReleased):
		kind = "released"
	default:
		s.t.Errorf("an error of no class: %v", err)
	}
	s.fails[kind]++
}
