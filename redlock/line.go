package redlock

import (
	"container/list"
	"context"
	"sync"

	"github.com/quorumlock/quorumlock/clock"
)

// line is where the goroutines of this process that want one key stand, first
// come first served, so that a process has one contender per key on the nodes
// however many of its goroutines want it. A key that nobody wants or holds has
// no entry.
type line struct {
	mu    sync.Mutex // guards what follows
	spots map[string]*spot
	spare []*spot        // that are not used, so that most keys need no new one
	rows  map[string]row // of keys that nobody here wants at the moment and rivals did
}

// maxSpare is how many unused spots a line keeps.
const maxSpare = 64

// spot is one key's line.
type spot struct {
	holder  *Lease    // the lease of this process on the key; it may have run out
	trying  bool      // the one at the head asks the nodes
	waiting list.List // of chan struct{}, the others; each is told once, when its turn has come
	row     row
}

// enter returns when it is the caller's turn to try for key, or with an error
// when ctx is done or stop is closed. After nil the caller must call leave.
func (n *line) enter(ctx context.Context, stop <-chan struct{}, key string, now clock.Instant) error {
	n.mu.Lock()
	s := n.spot(key)
	if !s.trying && !s.held(now) && s.waiting.Len() == 0 {
		s.trying = true
		n.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	me := s.waiting.PushBack(turn)
	n.mu.Unlock()

	var err error
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = ended(ctx)
	case <-stop:
		err = ErrClosed
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-turn: // it came at the same moment: it is the next one's
		s.trying = false
		n.advance(key, s)
	default:
		s.waiting.Remove(me)
		n.advance(key, s)
	}
	return err
}

// yields reports whether the caller, whose turn it is, should let other processes
// go first.
func (n *line) yields(key string, clk clock.Clock) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spots[key]
	return s.row.leases > 0 && s.row.over(clk.Now())
}

// leave ends the caller's turn. lease is what it has won, or nil.
func (n *line) leave(key string, lease *Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spots[key]
	s.trying = false
	if lease != nil {
		s.row = s.row.next(lease, s.waiting.Len())
		s.take(lease)
	}
	n.advance(key, s)
}

// hold notes a lease that was won out of turn.
func (n *line) hold(key string, lease *Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spot(key)
	s.take(lease)
	n.advance(key, s)
}

// free notes that lease has ended, which is the next one's turn.
func (n *line) free(key string, lease *Lease, now clock.Instant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.spots[key]; s != nil && s.holder == lease {
		s.holder = nil
		s.row.last = now
		if lease.acquire.denied() {
			s.row = s.row.met(s.waiting.Len())
		}
		n.advance(key, s)
	}
}

// leavesGap reports whether nodes are to have answered the release of key before the
// next one in line goes.
func (n *line) leavesGap(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spots[key]
	return s != nil && s.row.leavesGap()
}

// held reports whether a valid lease of this process holds key.
func (n *line) held(key string, now clock.Instant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.spots[key]
	return s != nil && s.held(now)
}

func (s *spot) held(now clock.Instant) bool {
	return s.holder != nil && s.holder.heldAt(now)
}

// take notes the holder. One that has ended meanwhile may have been freed
// already, and would never be again.
func (s *spot) take(lease *Lease) {
	if lease.reason() == nil {
		s.holder = lease
	}
}

// spot returns key's line, made if need be. n.mu is held.
func (n *line) spot(key string) *spot {
	s := n.spots[key]
	if s == nil {
		if last := len(n.spare) - 1; last >= 0 {
			s, n.spare = n.spare[last], n.spare[:last]
		} else {
			s = &spot{}
		}
		s.row = n.rows[key]
		n.spots[key] = s
		delete(n.rows, key)
	}
	return s
}

// advance gives the turn to whoever is next, if it is free, and drops a line
// that is no longer used. n.mu is held.
func (n *line) advance(key string, s *spot) {
	if s.trying || s.holder != nil {
		return
	}
	if next := s.waiting.Front(); next != nil {
		s.waiting.Remove(next)
		s.trying = true
		next.Value.(chan struct{}) <- struct{}{}
		return
	}
	delete(n.spots, key)
	if len(n.spare) < maxSpare {
		n.spare = append(n.spare, s)
	}
	if s.row.limit > 0 {
		if len(n.rows) >= maxRows {
			clear(n.rows)
		}
		n.rows[key] = s.row
	}
}
