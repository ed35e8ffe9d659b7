package httpguard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// memoryLock is a lock in this process, whose nodes can fail.
type memoryLock struct {
	*memoryState
	ttl time.Duration
}

type memoryState struct {
	mu    sync.Mutex // guards what follows
	held  map[string]*memoryLease
	fails error // what TryAcquire says instead

	released chan string   // gets each key that was released, if not nil
	hold     chan struct{} // Release waits until it is closed, if not nil
}

type memoryLease struct {
	lock  *memoryState
	key   string
	until time.Time
	kept  bool
}

func newMemoryLock() *memoryLock {
	return &memoryLock{memoryState: &memoryState{held: map[string]*memoryLease{}}}
}

func (m *memoryLock) WithTTL(ttl time.Duration) (Locker, error) {
	if ttl > time.Minute {
		return nil, fmt.Errorf("%w: ttl %v: want at most a minute", redlock.ErrInvalid, ttl)
	}
	return &memoryLock{m.memoryState, ttl}, nil
}

func (m *memoryLock) TryAcquire(ctx context.Context, key string) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.fails != nil {
		return nil, m.fails
	}
	if m.left(key) > 0 {
		return nil, fmt.Errorf("acquire %q: %w", key, redlock.ErrHeld)
	}
	lease := &memoryLease{lock: m.memoryState, key: key, until: time.Now().Add(m.ttl)}
	m.held[key] = lease
	return lease, nil
}

func (m *memoryLock) Remaining(_ context.Context, key string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left(key)
}

// left is how long key is held. mu is held.
func (m *memoryState) left(key string) time.Duration {
	lease := m.held[key]
	switch {
	case lease == nil:
		return 0
	case lease.kept:
		return time.Until(lease.until.Add(time.Hour))
	}
	return time.Until(lease.until)
}

// keys is which keys are held.
func (m *memoryState) keys() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.held {
		keys = append(keys, key)
	}
	return keys
}

func (l *memoryLease) KeepAlive() {
	l.lock.mu.Lock()
	defer l.lock.mu.Unlock()
	l.kept = true
}

func (l *memoryLease) Release(ctx context.Context) error {
	if l.lock.hold != nil {
		<-l.lock.hold
	}
	l.lock.mu.Lock()
	if l.lock.held[l.key] == l {
		delete(l.lock.held, l.key)
	}
	l.lock.mu.Unlock()
	if l.lock.released != nil {
		l.lock.released <- l.key
	}
	return ctx.Err()
}
