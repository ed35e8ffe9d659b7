package redlock

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

var (
	soakSeeds = flag.Int("soak.seeds", 15, "how many seeds the soak runs")
	soakFirst = flag.Uint64("soak.first", 1, "the first seed of the soak")
)

// soakTTL and soakMaxTTL are what the lockers of a soak use, and soakError is how
// wrong the wall clocks of clients and nodes are at most. Fences outlive lost data
// as long as twice that, and the second that they may be ahead of a node's clock,
// are less than the quarantine, which is longer than soakMaxTTL.
const (
	soakTTL    = 600 * time.Millisecond
	soakMaxTTL = 6 * time.Second
	soakError  = time.Second
)

// TestSoakHoldsNoKeyTwiceAndLeavesNothing runs several lockers at random on
// shared nodes that fail at random, and judges every lease, its fence, every call's
// length and what is left at the end.
//
// In half of the seeds the nodes are forgetful: they lose their keys and are back at
// once. In the other half they are durable, and one that loses its keys all the same
// is kept out for MaxTTL by hand.
func TestSoakHoldsNoKeyTwiceAndLeavesNothing(t *testing.T) {
	for seed := *soakFirst; seed < *soakFirst+uint64(*soakSeeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSoak(t, seed).run() })
		})
	}
}

type soak struct {
	t         *testing.T
	rng       *rand.Rand
	seed      uint64
	mem       []*memNode
	nodes     []Node
	forgetful bool
	fenced    bool

	mu        sync.Mutex // guards what follows
	lockers   []*Locker
	leases    map[string][]*held
	fences    map[string][]fenced
	wiped     []time.Time // per node: when it lost its keys
	restarted []time.Time // per node: when it did so last, with its keys or without
	wins      int
	fails     map[string]int
	faults    map[string]int
	resume    []func() // per node: ends its stop; nil if it is not stopped
}

// held is a lease that was won, as its judge knows it.
type held struct {
	*Lease
	over bool // it said so once
	// until is the latest end that its Remaining has promised. Its holder may give
	// that up by a release, and a majority of nodes by losing the key.
	until time.Time
}

func newSoak(t *testing.T, seed uint64) *soak {
	s := &soak{
		t: t, rng: rand.New(rand.NewPCG(seed, 99)), seed: seed,
		leases: map[string][]*held{}, fences: map[string][]fenced{}, fails: map[string]int{}, faults: map[string]int{},
	}
	s.forgetful, s.fenced = s.rng.IntN(2) == 0, s.rng.IntN(2) == 0
	n := []int{1, 2, 3, 3, 4, 5, 5, 5}[s.rng.IntN(8)]
	s.mem, s.nodes = memNodes(n)
	s.wiped, s.restarted = make([]time.Time, n), make([]time.Time, n)
	s.resume = make([]func(), n)
	for _, m := range s.mem {
		m.lag = 200 * time.Microsecond
		m.noKill = s.rng.IntN(6) == 0
		m.shyPeer = s.rng.IntN(8) == 0 && !s.forgetful
		// Behind, and not ahead: to a client that comes later, a clock that was
		// stepped forward since the node's start looks like a long life.
		m.step = -time.Duration(s.rng.Int64N(int64(soakError)))
	}
	return s
}

// client is a Locker. The last one comes when the others have been there for a
// while, and knows nothing of what happened before.
func (s *soak) client(rng *rand.Rand) *Locker {
	c := clock.NewSkewed(1 + (rng.Float64()-0.5)*0.008)
	c.Step(time.Since(c.Now().Wall())) // a Skewed clock's wall starts with it
	c.Step(time.Duration(rng.Int64N(int64(2*soakError))) - soakError)
	l, err := New(s.nodes, Config{
		TTL: soakTTL, MaxTTL: soakMaxTTL, KeyPrefix: "p:", Clock: c,
		NodeTimeout: []time.Duration{0, 0, soakTTL / 4}[rng.IntN(3)], // one that waits long beside one that does not
		Fenced:      s.fenced, FenceTTL: fenceTTLs * soakMaxTTL,
		DurableNodes: !s.forgetful, AllowUnidentified: !s.forgetful,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockers = append(s.lockers, l)
	return l
}

func (s *soak) run() {
	const clients, workers = 4, 3
	end := time.Now().Add(25 * time.Second)
	var wg sync.WaitGroup
	for c := range clients {
		rng := rand.New(rand.NewPCG(s.seed, uint64(1000+c*100)))
		wg.Go(func() {
			if c == clients-1 {
				time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
			}
			l := s.client(rng)
			for w := range workers {
				rng := rand.New(rand.NewPCG(s.seed, uint64(1001+c*100+w)))
				wg.Go(func() {
					for time.Now().Before(end) {
						s.act(l, rng)
					}
				})
			}
		})
	}
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(s.seed, 7))
		calm := []int{250, 800, 2000, 4000}[rng.IntN(4)]
		for time.Now().Before(end) {
			time.Sleep(time.Duration(rng.IntN(calm)) * time.Millisecond)
			s.fault(rng)
		}
	})
	wg.Go(func() {
		for time.Now().Before(end) {
			time.Sleep(3*time.Millisecond + 137*time.Microsecond)
			s.judge()
		}
	})
	wg.Wait()

	for i, m := range s.mem { // all is well again
		s.goOn(i)
		m.set(func(n *memNode) {
			n.mute, n.fail, n.refuse, n.silent, n.lag, n.late = 0, nil, nil, false, 200*time.Microsecond, 0
		})
	}
	// A second for a dial that hangs, one for a release that is repeated.
	time.Sleep(3 * time.Second)
	for _, m := range s.mem {
		if m.size() != 0 {
			s.t.Errorf("%s (no kill %v, shy %v) keeps %d keys though all were released", m, m.noKill, m.shyPeer, m.size())
		}
	}
	for _, l := range s.lockers {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := l.Close(ctx); err != nil {
			s.t.Errorf("close: %v", err)
		}
		cancel()
	}
	synctest.Wait()
	for _, m := range s.mem {
		if m.size() != 0 {
			s.t.Errorf("%s keeps %d keys after all were released and all lockers closed", m, m.size())
		}
		m.mu.Lock()
		for id, c := range m.conns { // one closed while the node was stopped is still listed
			select {
			case <-c.ended:
			default:
				s.t.Errorf("%s has connection %d", m, id)
			}
		}
		m.mu.Unlock()
	}
	// Goroutines that are just ending are still counted, so names are looked for.
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	for _, ours := range []string{"redlock.(*lane)", "redlock.(*keeper)", "redlock.(*Lease)", "redlock.(*Locker)", "errgroup"} {
		if strings.Contains(stacks, ours) {
			s.t.Errorf("a goroutine is left: %s", stacks)
			break
		}
	}
	s.checkFences()
	s.t.Logf("N=%d forgetful=%v fenced=%v: %d leases, failures %v, faults %v", len(s.mem), s.forgetful, s.fenced, s.wins, s.fails, s.faults)
	if s.wins == 0 {
		s.t.Error("nothing was ever acquired: the seed shows nothing")
	}
}

// won registers a lease that was asked for at begun; no other on the key may be
// held at this moment.
func (s *soak) won(key string, lease *Lease, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wins++
	now := time.Now()
	s.fences[key] = append(s.fences[key], fenced{begun, now, lease.Fence()})
	mine := lease.Remaining()
	kept := s.leases[key][:0]
	for _, other := range s.leases[key] {
		left := other.Remaining()
		gone := other.gaveUp()
		switch {
		case left > 0 && mine > 0:
			s.t.Errorf("TWO HOLDERS of %s: %v and %v left", key, left, mine)
		case mine > 0 && !gone && now.Before(other.until):
			s.t.Errorf("%s has a new holder %v before the end that the one before was promised", key, other.until.Sub(now))
		}
		if !gone && now.Before(other.until) {
			kept = append(kept, other)
		}
	}
	s.leases[key] = append(kept, &held{Lease: lease, until: now.Add(mine)})
}

// gaveUp reports whether the lease has ended otherwise than by running out.
func (h *held) gaveUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released || h.ended != nil && strings.Contains(h.ended.Error(), "majority")
}

// judge looks at all leases: one that has ended stays so, and one that is held
// is held by a quorum.
func (s *soak) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, leases := range s.leases {
		for _, h := range leases {
			on := 0
			for i, m := range s.mem {
				out := !s.wiped[i].IsZero() && time.Since(s.wiped[i]) < soakMaxTTL*103/100
				if out || m.holder("p:"+key) == h.token { // out of the vote
					on++
				}
			}
			left := h.Remaining()
			if until := time.Now().Add(left); left > 0 && until.After(h.until) {
				h.until = until
			}
			switch {
			case left == 0:
				h.over = true
			case h.over:
				s.t.Errorf("a lease on %s that had ended is held again", key)
			case on < quorum.Majority(len(s.mem)):
				s.t.Errorf("a lease on %s says %v are left, and only %d of %d nodes hold it", key, left, on, len(s.mem))
			}
			if left > soakMaxTTL {
				s.t.Errorf("%v left, more than any TTL", left)
			}
		}
	}
}

// fenced is a lease that was there at returned, and asked for at begun, by a clock
// that is right.
type fenced struct {
	begun, returned time.Time
	fence           fence.Token
}

// checkFences checks that no fence on a key was given twice, and that a lease which
// was asked for when another was there already has the larger one.
func (s *soak) checkFences() {
	for key, byBegin := range s.fences {
		byReturn := slices.Clone(byBegin)
		slices.SortFunc(byBegin, func(a, b fenced) int { return a.begun.Compare(b.begun) })
		slices.SortFunc(byReturn, func(a, b fenced) int { return a.returned.Compare(b.returned) })
		seen := make(map[fence.Token]bool)
		var highest fence.Token
		for _, l := range byBegin {
			for len(byReturn) > 0 && byReturn[0].returned.Before(l.begun) {
				highest = max(highest, byReturn[0].fence)
				byReturn = byReturn[1:]
			}
			switch {
			case (l.fence != 0) != s.fenced:
				s.t.Errorf("a lease on %s has the fence %d", key, l.fence)
			case s.fenced && seen[l.fence]:
				s.t.Errorf("two leases on %s have the fence %d", key, l.fence)
			case s.fenced && l.fence <= highest:
				s.t.Errorf("a lease on %s has the fence %d, and one before it had %d", key, l.fence, highest)
			}
			seen[l.fence] = true
		}
	}
}
