package httpguard

import (
	"context"
	"errors"
	"sync"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

// fault is what happens to calls of a store.
type fault uint8

const (
	well   fault = iota
	dead         // they are not carried out, and fail
	lost         // they are carried out, and fail
	silent       // they are carried out, and never answered
)

var errDied = errors.New("the store has died")

// faultyStore is a store in memory whose calls can be made to fail.
type faultyStore struct {
	*memstore.Store
	mu     sync.Mutex // guards what follows
	faults map[string]fault
	calls  map[string]int
}

func newFaultyStore(s *memstore.Store) *faultyStore {
	return &faultyStore{Store: s, faults: map[string]fault{}, calls: map[string]int{}}
}

// set makes calls of this name fail, or all of them.
func (s *faultyStore) set(f fault, calls ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		s.faults[call] = f
	}
}

// called is how many calls of this name there have been.
func (s *faultyStore) called(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func through[T any](ctx context.Context, s *faultyStore, call string, carryOut func() (T, error)) (answer T, err error) {
	s.mu.Lock()
	f := s.faults[call]
	s.calls[call]++
	s.mu.Unlock()
	if f == dead {
		return answer, errDied
	}
	carried, err := carryOut()
	switch f {
	case lost:
		return answer, errDied
	case silent:
		<-ctx.Done()
		return answer, ctx.Err()
	}
	return carried, err
}

func (s *faultyStore) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	return through(ctx, s, "claim", func() (idempotency.Claim, error) { return s.Store.Claim(ctx, r) })
}

func (s *faultyStore) Complete(ctx context.Context, r idempotency.CompleteRequest) (idempotency.Completion, error) {
	return through(ctx, s, "complete", func() (idempotency.Completion, error) { return s.Store.Complete(ctx, r) })
}

func (s *faultyStore) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	_, err := through(ctx, s, "renew", func() (struct{}, error) { return struct{}{}, s.Store.Renew(ctx, r) })
	return err
}

func (s *faultyStore) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	_, err := through(ctx, s, "unknown", func() (struct{}, error) { return struct{}{}, s.Store.MarkUnknown(ctx, r) })
	return err
}

func (s *faultyStore) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	_, err := through(ctx, s, "abandon", func() (struct{}, error) { return struct{}{}, s.Store.Abandon(ctx, r) })
	return err
}
