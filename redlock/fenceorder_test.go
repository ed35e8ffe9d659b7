package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
)

// grant is a lease as the judges of fences know it.
type grant struct {
	begun, returned int64 // of all calls and returns of a run, in their order
	fence           fence.Token
}

// fenceFaults is what is wrong with the fences of a key's grants. Fences are unique,
// and larger than those of leases that were there before the attempt began, whatever
// the clocks do. If keys lasted as long as they were to, they rise with every lease.
func fenceFaults(grants []grant, keysLasted bool) (faults []string) {
	byReturn := slices.SortedFunc(slices.Values(grants), func(a, b grant) int { return cmp.Compare(a.returned, b.returned) })
	seen := map[fence.Token]bool{}
	for i, g := range byReturn {
		if seen[g.fence] {
			faults = append(faults, fmt.Sprintf("fence %d twice", g.fence))
		}
		seen[g.fence] = true
		for _, before := range byReturn[:i] {
			if before.fence >= g.fence && (keysLasted || before.returned < g.begun) {
				faults = append(faults, fmt.Sprintf("fence %d after %d", g.fence, before.fence))
			}
		}
	}
	return faults
}

func TestJudgeOfFencesFindsFaults(t *testing.T) {
	for _, test := range []struct {
		grants       []grant
		ever, lasted int // faults
	}{
		{[]grant{{1, 2, 10}, {3, 4, 11}, {5, 6, 20}}, 0, 0},
		{[]grant{{5, 6, 20}, {1, 2, 10}, {3, 4, 11}}, 0, 0}, // in any order
		{[]grant{{1, 2, 10}, {3, 4, 9}}, 1, 1},              // one after another
		{[]grant{{1, 3, 10}, {2, 4, 9}}, 0, 1},              // both at once
		{[]grant{{1, 4, 10}, {2, 3, 9}}, 0, 0},
		{[]grant{{1, 3, 10}, {2, 4, 10}}, 1, 2},
		{[]grant{{1, 2, 10}, {3, 4, 11}, {5, 6, 10}}, 3, 3},
	} {
		if got := len(fenceFaults(test.grants, false)); got != test.ever {
			t.Errorf("%v: %d faults, want %d", test.grants, got, test.ever)
		}
		if got := len(fenceFaults(test.grants, true)); got != test.lasted {
			t.Errorf("%v, and keys lasted: %d faults, want %d", test.grants, got, test.lasted)
		}
	}
}

// TestFencesRiseWhateverHappens runs lockers whose clocks differ on nodes whose
// clocks differ, that are cut off, slow, or forget everything, and judges the
// fences. With every other seed keys vanish besides.
func TestFencesRiseWhateverHappens(t *testing.T) {
	var total struct{ grants, stamps, quarantined atomic.Int64 }
	for seed := *soakFirst; seed < *soakFirst+uint64(*soakSeeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFenceSoak(t, seed)
				s.run()
				total.grants.Add(int64(s.won()))
				total.stamps.Add(int64(stamps(s.mem)))
				total.quarantined.Add(s.quarantined.Load())
			})
		})
	}
	t.Logf("%d grants, %d stamps, %d refusals in quarantine", total.grants.Load(), total.stamps.Load(), total.quarantined.Load())
	if total.grants.Load() == 0 || total.stamps.Load() == 0 {
		t.Error("the seeds show nothing")
	}
}

type fenceSoak struct {
	t          *testing.T
	seed       uint64
	keysVanish bool
	mem        []*memNode
	lockers    []*Locker

	order       atomic.Int64
	quarantined atomic.Int64
	mu          sync.Mutex // guards grants
	grants      map[string][]grant
}

// A node that has forgotten everything counts again 5 s later. That must be more
// than twice what a clock may be wrong, and a second: the safety argument's bound.
const (
	fenceSoakMaxTTL = 2 * time.Second
	fenceSoakSkew   = 1900 * time.Millisecond
	fenceSoakLate   = 3 * time.Millisecond
)

func newFenceSoak(t *testing.T, seed uint64) *fenceSoak {
	draw := rand.New(rand.NewPCG(seed, 5))
	s := &fenceSoak{t: t, seed: seed, keysVanish: seed%2 == 0, grants: map[string][]grant{}}
	var nodes []Node
	s.mem, nodes = memNodes([]int{1, 3, 3, 4, 5, 5}[draw.IntN(6)])
	skew := func() time.Duration {
		return time.Duration(draw.Int64N(int64(2*fenceSoakSkew))) - fenceSoakSkew
	}
	for _, n := range s.mem {
		n.late = fenceSoakLate // so that there is something under way to be lost
		n.step = skew()
	}
	for range 3 {
		c := clock.NewSkewed(1)
		c.Step(skew())
		s.lockers = append(s.lockers, newLocker(t, nodes, Config{
			Fenced: true, TTL: soakTTL, MaxTTL: fenceSoakMaxTTL, Clock: c,
			Backoff: func(n int) time.Duration { return time.Duration(3+5*n) * time.Millisecond },
		}))
	}
	synctest.Wait()
	return s
}

func (s *fenceSoak) run() {
	end := time.Now().Add(12 * time.Second)
	var wg sync.WaitGroup
	for i, l := range s.lockers {
		for w := range 2 {
			draw := rand.New(rand.NewPCG(s.seed, uint64(100+i*10+w)))
			wg.Go(func() {
				for time.Now().Before(end) {
					s.act(l, draw)
				}
			})
		}
	}
	wg.Go(func() {
		draw := rand.New(rand.NewPCG(s.seed, 6))
		for time.Now().Before(end) {
			time.Sleep(time.Duration(draw.IntN(120)) * time.Millisecond)
			s.fault(draw)
		}
	})
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, grants := range s.grants {
		for _, fault := range fenceFaults(grants, !s.keysVanish) {
			s.t.Errorf("%s: %s", key, fault)
		}
	}
}

// won is how many leases there were.
func (s *fenceSoak) won() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, grants := range s.grants {
		n += len(grants)
	}
	return n
}

// act is one thing that a worker does.
func (s *fenceSoak) act(l *Locker, draw *rand.Rand) {
	key := fmt.Sprint("k", draw.IntN(2))
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+draw.IntN(300))*time.Millisecond)
	defer cancel()
	g := grant{begun: s.order.Add(1)}
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		s.quarantined.Add(int64(min(1, quarantinedIn(err))))
		if errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed) {
			s.t.Error(err)
		}
		time.Sleep(time.Duration(draw.IntN(20)) * time.Millisecond)
		return
	}
	s.mu.Lock()
	g.returned, g.fence = s.order.Add(1), lease.Fence()
	s.grants[key] = append(s.grants[key], g)
	s.mu.Unlock()
	if !g.fence.Valid() {
		s.t.Errorf("fence %d", g.fence)
	}
	for range draw.IntN(3) {
		time.Sleep(time.Duration(draw.IntN(60)) * time.Millisecond)
		lease.Extend(context.WithoutCancel(ctx), soakTTL+time.Duration(draw.IntN(1000))*time.Millisecond)
	}
	if lease.Fence() != g.fence {
		s.t.Errorf("fence %d, was %d", lease.Fence(), g.fence)
	}
	if draw.IntN(10) > 0 { // or it runs out
		lease.Release(context.WithoutCancel(ctx))
	}
}

// fault breaks one node, for a while.
func (s *fenceSoak) fault(draw *rand.Rand) {
	n := s.mem[draw.IntN(len(s.mem))]
	span := time.Duration(draw.IntN(500)) * time.Millisecond
	for_ := func(on, off func(n *memNode)) {
		n.set(on)
		time.AfterFunc(span, func() { n.set(off) })
	}
	switch draw.IntN(8) {
	case 0:
		n.cut()
	case 1:
		refused := errors.New("connection refused")
		for_(func(n *memNode) { n.refuse = refused }, func(n *memNode) { n.refuse = nil })
		n.cut()
	case 2, 3:
		lag := time.Duration(draw.IntN(60)) * time.Millisecond
		for_(func(n *memNode) { n.lag = lag }, func(n *memNode) { n.lag = 0 })
	case 4:
		late := time.Duration(draw.IntN(60)) * time.Millisecond
		for_(func(n *memNode) { n.late = late }, func(n *memNode) { n.late = fenceSoakLate })
	case 5:
		n.set(func(n *memNode) { n.mute = 1 })
	case 6:
		switch draw.IntN(40) {
		case 0:
			n.restart(false)
		case 1:
			for _, n := range s.mem {
				n.restart(false)
			}
		}
	case 7:
		if s.keysVanish {
			n.vanish(fmt.Sprint("k", draw.IntN(2)))
		}
	}
}
