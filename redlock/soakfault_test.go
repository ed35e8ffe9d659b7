package redlock

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// goOn ends a node's stop.
func (s *soak) goOn(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resume[i] != nil {
		s.resume[i]()
		s.resume[i] = nil
	}
}

// mayRestart reports whether node i may restart now, and notes it. A majority of
// forgetful nodes that restart together grant nothing for a while, which is to
// happen, but not all the time.
func (s *soak) mayRestart(i int, rng *rand.Rand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := 0
	for j, at := range s.restarted {
		if j != i && !at.IsZero() && time.Since(at) < 2*soakMaxTTL {
			out++
		}
	}
	if out >= len(s.mem)-quorum.Majority(len(s.mem)) && rng.IntN(20) > 0 {
		return false
	}
	s.restarted[i] = time.Now()
	return true
}

// sever ends the connections to a node. That of one that is durable may restart.
func (s *soak) sever(m *memNode) {
	if s.forgetful {
		m.cut()
	} else {
		m.restart(true)
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
		if s.forgetful && !s.mayRestart(i, rng) {
			return
		}
		m.restart(true)
	case 2:
		name = "wipe"
		if s.forgetful {
			if !s.mayRestart(i, rng) {
				return
			}
			s.mu.Lock()
			s.wiped[i] = time.Now()
			s.mu.Unlock()
			m.restart(false)
			break
		}
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
		s.sever(m)
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
		s.sever(m)
	}
	s.mu.Lock()
	s.faults[name]++
	s.mu.Unlock()
}
