package redlock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

var (
	soakSeeds = flag.Int("soak.seeds", 15, "how many seeds the soak runs")
	soakFirst = flag.Uint64("soak.first", 1, "the first seed of the soak")
)

// soakTTL and soakMaxTTL are what the lockers of a soak use.
const (
	soakTTL    = 600 * time.Millisecond
	soakMaxTTL = 6 * time.Second
)

// TestSoakHoldsNoKeyTwiceAndLeavesNothing runs several lockers at random on
// shared nodes that fail at random, and judges every lease, every call's length
// and what is left at the end. Nodes that lose their keys stay out for MaxTTL,
// as the package's documentation asks for.
func TestSoakHoldsNoKeyTwiceAndLeavesNothing(t *testing.T) {
	for seed := *soakFirst; seed < *soakFirst+uint64(*soakSeeds); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSoak(t, seed).run() })
		})
	}
}

type soak struct {
	t     *testing.T
	rng   *rand.Rand
	seed  uint64
	mem   []*memNode
	nodes []Node

	mu     sync.Mutex // guards what follows
	leases map[string][]*held
	wiped  []time.Time // per node: when it lost its keys
	wins   int
	fails  map[string]int
	faults map[string]int
	resume []func() // per node: ends its stop; nil if it is not stopped
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
		leases: map[string][]*held{}, fails: map[string]int{}, faults: map[string]int{},
	}
	n := []int{1, 2, 3, 3, 4, 5, 5, 5}[s.rng.IntN(8)]
	s.mem, s.nodes = memNodes(n)
	s.wiped = make([]time.Time, n)
	s.resume = make([]func(), n)
	for _, m := range s.mem {
		m.lag = 200 * time.Microsecond
		m.noKill = s.rng.IntN(6) == 0
		m.shyPeer = s.rng.IntN(8) == 0
	}
	return s
}

func (s *soak) run() {
	const clients, workers = 3, 3
	var lockers []*Locker
	for range clients {
		l, err := New(s.nodes, Config{
			TTL: soakTTL, MaxTTL: soakMaxTTL, KeyPrefix: "p:", DurableNodes: true, AllowUnidentified: true,
			Clock: clock.NewSkewed(1 + (s.rng.Float64()-0.5)*0.008),
		})
		if err != nil {
			s.t.Fatal(err)
		}
		lockers = append(lockers, l)
	}
	end := time.Now().Add(25 * time.Second)
	var wg sync.WaitGroup
	for c, l := range lockers {
		for w := range workers {
			rng := rand.New(rand.NewPCG(s.seed, uint64(1000+c*100+w)))
			wg.Go(func() {
				for time.Now().Before(end) {
					s.act(l, rng)
				}
			})
		}
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
	for _, l := range lockers {
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
	s.t.Logf("N=%d: %d leases, failures %v, faults %v", len(s.mem), s.wins, s.fails, s.faults)
	if s.wins == 0 {
		s.t.Error("nothing was ever acquired: the seed shows nothing")
	}
}

// bounded runs a call and checks how long it took.
func (s *soak) bounded(what string, limit time.Duration, call func()) {
	began := time.Now()
	call()
	if took := time.Since(began); took > limit+50*time.Millisecond+50*time.Millisecond {
		s.t.Errorf("%s took %v, want %v at most and a node's timeout", what, took, limit)
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
		if view, err = l.WithTTL(time.Duration(50+rng.IntN(5900)) * time.Millisecond); err != nil {
			s.t.Error(err)
			return
		}
		l = view
	}
	var lease *Lease
	var err error
	switch rng.IntN(5) {
	case 0, 1:
		s.bounded("TryAcquire", timeout, func() { lease, err = l.TryAcquire(ctx, key) })
	case 2, 3:
		s.bounded("Acquire", timeout, func() { lease, err = l.Acquire(ctx, key) })
	case 4:
		s.bounded("Do", timeout+50*time.Millisecond, func() {
			err = l.Do(ctx, key, func(ctx context.Context, lease *Lease) error {
				s.won(key, lease)
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
	s.won(key, lease)
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
		s.bounded("Extend", 60*time.Millisecond, func() { err = lease.Extend(ectx, ttl) })
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
	s.bounded("Release", 0, func() { err = lease.Release(ctx) })
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

// won registers a lease; no other on the key may be held at this moment.
func (s *soak) won(key string, lease *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wins++
	now := time.Now()
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
			on := heldOn(s.mem, "p:"+key, h.token)
			for i := range s.mem {
				if !s.wiped[i].IsZero() && time.Since(s.wiped[i]) < soakMaxTTL*103/100 {
					on++ // out of the vote
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

// goOn ends a node's stop.
func (s *soak) goOn(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resume[i] != nil {
		s.resume[i]()
		s.resume[i] = nil
	}
}

// fault breaks one node, for a while.
func (s *soak) fault(rng *rand.Rand) {
	i := rng.IntN(len(s.mem))
	m := s.mem[i]
	span := time.Duration(rng.IntN(700)) * time.Millisecond
	for_ := func(on, off func(n *memNode)) {
		m.set(on)
		time.AfterFunc(span, func() { m.set(off) })
	}
	name := ""
	switch rng.IntN(9) {
	case 0:
		name = "stop"
		span *= 4
		if rng.IntN(3) == 0 {
			span = 5*time.Second + span/2 // the connection is given up meanwhile
		}
		s.mu.Lock()
		if s.resume[i] == nil {
			s.resume[i] = m.stop()
			time.AfterFunc(span, func() { s.goOn(i) })
		}
		s.mu.Unlock()
	case 1:
		name = "restart"
		m.restart(true)
	case 2:
		name = "wipe"
		s.mu.Lock()
		recent := false
		for j := range s.wiped {
			recent = recent || j != i && !s.wiped[j].IsZero() && time.Since(s.wiped[j]) < 2*soakMaxTTL
		}
		if recent || len(s.mem) < 3 {
			s.mu.Unlock()
			return
		}
		s.wiped[i] = time.Now()
		s.mu.Unlock()
		out := errors.New("kept out after a restart")
		m.set(func(n *memNode) { n.refuse = out })
		m.restart(false)
		time.AfterFunc(soakMaxTTL*102/100, func() { m.set(func(n *memNode) { n.refuse = nil }) })
	case 3:
		name = "refuse"
		m.mu.Lock()
		already := m.refuse != nil
		m.mu.Unlock()
		if already {
			return
		}
		refused := errors.New("connection refused")
		m.set(func(n *memNode) { n.refuse = refused })
		m.restart(true)
		time.AfterFunc(span, func() {
			m.set(func(n *memNode) {
				if n.refuse == refused {
					n.refuse = nil
				}
			})
		})
	case 4:
		name = "lag"
		lag := time.Duration(rng.IntN(120)) * time.Millisecond
		for_(func(n *memNode) { n.lag = lag }, func(n *memNode) { n.lag = 200 * time.Microsecond })
	case 5:
		name = "late"
		late := time.Duration(rng.IntN(120)) * time.Millisecond
		for_(func(n *memNode) { n.late = late }, func(n *memNode) { n.late = 0 })
	case 6:
		name = "mute"
		m.set(func(n *memNode) { n.mute = 1 + rng.IntN(3) })
	case 7:
		name = "errors"
		for_(func(n *memNode) { n.fail = errors.New("MISCONF") }, func(n *memNode) { n.fail = nil })
	case 8:
		name = "silent"
		for_(func(n *memNode) { n.silent = true }, func(n *memNode) { n.silent = false })
		m.restart(true)
	}
	s.mu.Lock()
	s.faults[name]++
	s.mu.Unlock()
}
