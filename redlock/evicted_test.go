package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
