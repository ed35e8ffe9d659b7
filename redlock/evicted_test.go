package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
)

// Nodes that drop a lock and its counter, as those do that evict keys, have its
// holder told with the next renewal, and whoever comes then has a larger fence
// although nobody has counted any more. Until that renewal there can be two: the
// lock is not for such nodes, and the audit says so.
//
// field-reports: 21
func TestAnEvictedLockIsLostWithTheNextRenewal(t *testing.T) {
	for _, at := range []time.Duration{0, 300 * time.Millisecond, 999 * time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(5)
				cfg := Config{TTL: 3 * time.Second, Fenced: true}
				a, b := newLocker(t, nodes, cfg), newLocker(t, nodes, cfg)
				for range 20 { // no time goes by, so its fences are ahead of the clock
					cycle(t, a, "k")
					synctest.Wait()
				}
				lease := acquire(t, a, "k")
				synctest.Wait()
				lease.KeepAlive()
				time.Sleep(5*time.Second + at)
				vanish(mem[:3])
				for _, n := range mem[:3] {
					n.set(func(n *memNode) { n.counters = map[string]fence.Token{} })
				}
				evicted := time.Now()
				var next *Lease
				for next == nil {
					if next, _ = b.TryAcquire(t.Context(), "k"); next == nil {
						time.Sleep(time.Millisecond)
					}
				}
				if next.Fence() <= lease.Fence() {
					t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
				}
				<-lease.Context().Done()
				if took := time.Since(evicted); took > time.Second+a.nodeTimeout {
					t.Errorf("its holder was told after %v", took)
				}
				if !errors.Is(lease.reason(), ErrLost) || lease.Remaining() > 0 {
					t.Errorf("%v, %v left", lease.reason(), lease.Remaining())
				}
			})
		})
	}
}

// The same on servers that really evict: what fills them may drive out any key, the
// counter too.
//
// field-reports: 21
func TestServersThatEvictLoseTheLockAndNotTheOrderOfFences(t *testing.T) {
	servers, nodes := startServers(t, 3)
	cfg := patient()
	cfg.Fenced = true
	a, b := onServers(t, nodes, cfg), onServers(t, nodes, cfg)
	lease := acquire(t, a, "k")
	for _, s := range servers[:2] {
		s.fill(t)
	}
	if err := lease.Extend(context.Background(), cfg.TTL); !errors.Is(err, ErrLost) {
		t.Errorf("extended: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	next, err := b.Acquire(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if next.Fence() <= lease.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), lease.Fence())
	}
}

// fill lets the server evict, and writes to it until all keys that were there have
// gone.
func (s *realServer) fill(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	were := s.keys(t)
	for until := time.Now().Add(hang); len(were) == 0; were = s.keys(t) { // a majority was waited for, not this one
		if time.Now().After(until) {
			t.Fatal("there is nothing to evict")
		}
		time.Sleep(time.Millisecond)
	}
	s.do(t, "config", "set", "maxmemory-policy", "allkeys-random", "maxmemory", 3<<20)
	filler := strings.Repeat("x", 4<<10)
	for deadline := time.Now().Add(hang); s.admin.Exists(ctx, were...).Val() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%v are still there", s.keys(t))
		}
		s.admin.Pipelined(ctx, func(p redis.Pipeliner) error { // some of it may find no room
			for i := range 500 {
				p.Set(ctx, fmt.Sprint("filler-", i, "-", time.Now().UnixNano()), filler, 0)
			}
			return nil
		})
	}
	if stats := s.do(t, "info", "stats").(string); strings.Contains(stats, "evicted_keys:0\r") {
		t.Fatal("it has evicted nothing")
	}
	s.do(t, "config", "set", "maxmemory", 0)
}
