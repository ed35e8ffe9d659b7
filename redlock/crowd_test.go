package redlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
)

// Fifty clients, whose clocks are late by minutes, take one lock two thousand times.
// It is one's at a time, and the fences rise from each holder to the next.
//
// field-reports: 26
func TestFencesRiseFromHolderToHolderInACrowd(t *testing.T) {
	const clients, each = 50, 40
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		for i, n := range mem {
			n.lag = time.Duration(200+100*i) * time.Microsecond
			n.late = time.Duration(300-100*i) * time.Microsecond
		}
		var mu sync.Mutex // guards what follows
		var last fence.Token
		var holder, grants int
		var wg sync.WaitGroup
		for c := range clients {
			draw := rand.New(rand.NewPCG(26, uint64(c)))
			late := clock.NewSkewed(1)
			late.Step(-time.Duration(draw.IntN(600)) * time.Second)
			l := newLocker(t, nodes, Config{TTL: time.Second, Fenced: true, Clock: late})
			wg.Go(func() {
				for range each {
					lease, err := l.Acquire(context.Background(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if holder != 0 {
						t.Errorf("client %d has it, and client %d too", c+1, holder)
					}
					if lease.Fence() <= last {
						t.Errorf("fence %d after %d", lease.Fence(), last)
					}
					holder, last = c+1, lease.Fence()
					grants++
					mu.Unlock()
					time.Sleep(time.Duration(draw.IntN(500)) * time.Microsecond)
					mu.Lock()
					holder = 0
					mu.Unlock()
					if err := lease.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if grants != clients*each {
			t.Errorf("%d grants", grants)
		}
		synctest.Wait()
		if got := holders(mem, "k"); got != "- - -" {
			t.Errorf("left: %s", got)
		}
	})
}
