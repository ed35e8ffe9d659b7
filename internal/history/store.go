package history

import (
	"slices"
	"sync"

	"github.com/quorumlock/quorumlock/fence"
)

// Entry is an element that a guarded store has accepted.
type Entry struct {
	Key     string
	Fence   fence.Token
	Element string
}

// Store is a resource for tests: lists to which clients append under a fence. A
// list takes an element if no larger fence has been there before. The zero Store
// is empty and ready; it may be used by several goroutines at once.
type Store struct {
	mu    sync.Mutex // guards what follows
	gates map[string]*fence.Gate
	log   []Entry
}

// Append appends an element to the list of key. It returns an error that wraps
// fence.ErrStale, and has done nothing, where a larger fence came first.
func (s *Store) Append(key string, f fence.Token, element string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := s.gates[key]
	if gate == nil {
		if s.gates == nil {
			s.gates = make(map[string]*fence.Gate)
		}
		gate = new(fence.Gate)
		s.gates[key] = gate
	}
	return gate.Do(f, func() error {
		s.log = append(s.log, Entry{key, f, element})
		return nil
	})
}

// Log returns what has been accepted so far, of all keys, in the order in which
// it was.
func (s *Store) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}
