package fence

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestGateRefusesALateHolder(t *testing.T) {
	var gate Gate
	pass := func() error { return nil }
	for _, step := range []struct {
		token Token
		want  error
	}{
		{41, nil},
		{42, nil},
		{41, ErrStale},
		{42, nil}, // the same lease, again
		{41, ErrStale},
		{100, nil},
		{42, ErrStale},
	} {
		if err := gate.Do(step.token, pass); !errors.Is(err, step.want) {
			t.Errorf("fence %s: %v, want %v", step.token, err, step.want)
		}
	}
}

func TestGateRemembersAFenceWhoseWriteFailed(t *testing.T) {
	var gate Gate
	full := errors.New("disk full")
	if err := gate.Do(42, func() error { return full }); err != full {
		t.Errorf("the write's error became %v", err)
	}
	func() {
		defer func() { recover() }()
		gate.Do(43, func() error { panic("half written") })
	}()
	if err := gate.Do(42, func() error { t.Error("written by 42"); return nil }); !errors.Is(err, ErrStale) {
		t.Errorf("42 after 43: %v", err)
	}
	if err := gate.Do(43, func() error { return nil }); err != nil {
		t.Errorf("43 again: %v", err)
	}
}

// However many holders come at once and in whatever order, what the resource
// accepts never goes back, one write runs at a time, and nobody is refused for
// a fence that was not there before.
func TestGateKeepsTheOrderUnderConcurrency(t *testing.T) {
	for seed := range uint64(20) {
		const goroutines, writes, leases = 16, 200, 50
		var (
			gate     Gate
			accepted []Token // by the gate alone, so the race detector watches it
			inside   atomic.Int32
			start    = make(chan struct{})
			group    sync.WaitGroup
		)
		for g := range uint64(goroutines) {
			group.Go(func() {
				draw := rand.New(rand.NewPCG(seed, g))
				<-start
				for range writes {
					token := Token(1 + draw.IntN(leases))
					ran := false
					err := gate.Do(token, func() error {
						if inside.Add(1) != 1 {
							t.Error("two writes at once")
						}
						ran = true
						accepted = append(accepted, token)
						inside.Add(-1)
						return nil
					})
					if ran != (err == nil) {
						t.Errorf("fence %s: %v, and its write ran: %t", token, err, ran)
					}
					if err != nil && (!errors.Is(err, ErrStale) || token == leases) {
						t.Errorf("fence %s: %v", token, err)
					}
				}
			})
		}
		close(start)
		group.Wait()

		for i := 1; i < len(accepted); i++ {
			if accepted[i] < accepted[i-1] {
				t.Fatalf("seed %d: %s was accepted after %s", seed, accepted[i], accepted[i-1])
			}
		}
		if len(accepted) == 0 || accepted[len(accepted)-1] != leases {
			t.Fatalf("seed %d: the largest fence is not the last that was accepted: %v", seed, accepted)
		}
	}
}
