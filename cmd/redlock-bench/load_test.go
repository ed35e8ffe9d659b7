package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/redlock"
)

// fakeLocker is a lock inside this process, with faults.
type fakeLocker struct {
	mu     sync.Mutex // guards what follows
	held   map[string]bool
	leases int64 // how many there were

	broken   bool                                  // grants what is held
	grant    func(n int64) error                   // why the nth attempt fails
	release  error                                 // why each release fails
	lifetime time.Duration                         // of a lease; 0 is for long
	refused  func(waiting int64)                   // told when a waiting acquire finds the key in somebody's hands
	left     func(ctx context.Context, key string) // told of each release
	fence    func(n int64) fence.Token             // of the nth lease

	n, waiting atomic.Int64
	relied     atomic.Bool // a holder has looked at its lease
}

type fakeLease struct {
	*fakeLocker
	key   string
	fence fence.Token
	ctx   context.Context
	stop  context.CancelFunc
	ends  time.Time
}

func (f *fakeLocker) TryAcquire(ctx context.Context, key string) (lease, error) {
	n := f.n.Add(1)
	if f.grant != nil {
		if err := f.grant(n); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[key] && !f.broken {
		return nil, redlock.ErrHeld
	}
	if f.held == nil {
		f.held = make(map[string]bool)
	}
	f.held[key] = true
	life := f.lifetime
	if life == 0 {
		life = time.Hour
	}
	l := &fakeLease{fakeLocker: f, key: key, ends: time.Now().Add(life)}
	if f.leases++; f.fence != nil {
		l.fence = f.fence(f.leases)
	}
	l.ctx, l.stop = context.WithDeadlineCause(context.Background(), l.ends, redlock.ErrLost)
	return l, nil
}

func (f *fakeLocker) Acquire(ctx context.Context, key string) (lease, error) {
	defer f.waiting.Add(-1)
	for f.waiting.Add(1); ; {
		l, err := f.TryAcquire(ctx, key)
		if !errors.Is(err, redlock.ErrHeld) {
			return l, err
		}
		if f.refused != nil && f.relied.Load() {
			f.refused(f.waiting.Load())
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire %q: %w: %w", key, ctx.Err(), err)
		case <-time.After(100 * time.Microsecond):
		}
	}
}

func (f *fakeLocker) Close(context.Context) error { return nil }

func (l *fakeLease) Context() context.Context { return l.ctx }

func (l *fakeLease) KeepAlive() {}

func (l *fakeLease) Fence() fence.Token { return l.fence }

func (l *fakeLease) Remaining() time.Duration {
	l.relied.Store(true)
	return time.Until(l.ends)
}

func (l *fakeLease) Release(ctx context.Context) error {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, l.key)
	if l.left != nil {
		l.left(ctx, l.key)
	}
	return l.release
}

// short is a phase of so many cycles.
func short(cycles int) phase {
	return phase{name: "distinct", workers: 4, cycles: cycles, keys: func(w int) []string { return numbered(fmt.Sprint(w), 2) }}
}

func doPhase(t *testing.T, ctx context.Context, p phase, l locker) *recorder {
	t.Helper()
	recs := make([]*recorder, p.workers)
	for i := range recs {
		recs[i] = newRecorder()
	}
	all, _ := p.run(ctx, []locker{l}, time.Now().Add(-time.Second), recs)
	return all
}

// field-reports: 108
func TestPhaseDoesItsCycles(t *testing.T) {
	for _, n := range []int{1, 3, 4, 101} {
		all := doPhase(t, t.Context(), short(n), &fakeLocker{})
		if got := all.ok.Load(); got != int64(n) || len(all.holds) != n {
			t.Errorf("%d cycles and %d holds, want %d", got, len(all.holds), n)
		}
		for i, h := range all.took {
			if h.TotalCount() != int64(n) {
				t.Errorf("%d times for %s, want %d", h.TotalCount(), stepNames[i], n)
			}
		}
		for _, h := range all.holds {
			if h.Called < time.Second || h.Acquired < h.Called || h.Released < h.Acquired || h.Until < h.Released {
				t.Errorf("hold %+v", h)
			}
		}
	}
}

func TestPhaseEndsWithItsTime(t *testing.T) {
	p := short(0)
	p.length = 20 * time.Millisecond
	if all := doPhase(t, t.Context(), p, &fakeLocker{}); all.ok.Load() == 0 {
		t.Error("nothing was done")
	}
}

// Cycles are counted by how they ended, and only those that succeeded count as
// done or as time taken.
//
// field-reports: 108
func TestFailuresAreToldApart(t *testing.T) {
	node := fmt.Errorf("node timed out: %w", context.DeadlineExceeded)
	for _, test := range []struct {
		err  error
		want failure
	}{
		{redlock.ErrHeld, held},
		{errors.Join(redlock.ErrNoQuorum, node), noQuorum},
		{redlock.ErrTooSlow, tooSlow},
		{redlock.ErrLost, lost},
		{redlock.ErrClosed, closed},
		{context.DeadlineExceeded, timedOut},
		{errors.New("what is this"), other},
	} {
		l := &fakeLocker{grant: func(n int64) error {
			if n%4 == 0 {
				return fmt.Errorf("acquire: %w", test.err)
			}
			return nil
		}}
		all := doPhase(t, t.Context(), short(20), l)
		for i, n := range all.failed {
			want := int64(0)
			if failure(i) == test.want {
				want = 5
			}
			if n != want {
				t.Errorf("%v: %d failures of kind %s, want %d", test.err, n, failureNames[i], want)
			}
		}
		if n := all.took[stepCycle].TotalCount(); all.ok.Load() != 15 || n != 15 || len(all.holds) != 15 {
			t.Errorf("%v: %d ok, %d times, %d holds; want 15", test.err, all.ok.Load(), n, len(all.holds))
		}
		if !errors.Is(all.firstError[test.want], test.err) {
			t.Errorf("%v: first error %v", test.err, all.firstError[test.want])
		}
	}
}

// field-reports: 108
func TestFailedReleaseIsAFailedCycle(t *testing.T) {
	all := doPhase(t, t.Context(), short(10), &fakeLocker{release: redlock.ErrLost})
	if all.ok.Load() != 0 || all.failed[lost] != 10 || len(all.holds) != 10 {
		t.Errorf("%d ok, %v failed, %d holds", all.ok.Load(), all.failed, len(all.holds))
	}
}

func TestLeaseThatEndsWhileHeldIsLost(t *testing.T) {
	p := short(4)
	p.hold = time.Hour
	all := doPhase(t, t.Context(), p, &fakeLocker{lifetime: time.Millisecond})
	if all.ok.Load() != 0 || all.failed[lost] != 4 {
		t.Errorf("%d ok, %v failed", all.ok.Load(), all.failed)
	}
	for _, h := range all.holds {
		if h.Lost == 0 || h.Until > h.Lost {
			t.Errorf("hold %+v", h)
		}
	}
	if err := all.firstError[lost]; !errors.Is(err, redlock.ErrLost) {
		t.Errorf("first error %v", err)
	}
}

func TestWaitIsBounded(t *testing.T) {
	p := short(4)
	p.wait = time.Millisecond
	all := doPhase(t, t.Context(), p, &fakeLocker{grant: func(int64) error { return redlock.ErrHeld }})
	if all.failed[timedOut] != 4 || all.failed[held] != 0 {
		t.Errorf("%v failed", all.failed)
	}
}

// A phase that ends while a worker waits or holds has cut that cycle short; it
// has not failed. What was held is released.
func TestEndCutsCyclesShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := phase{workers: 4, length: time.Hour, wait: time.Hour, hold: time.Hour, keys: func(int) []string { return []string{"k"} }}
	l := &fakeLocker{refused: func(waiting int64) {
		if waiting == 3 { // the fourth holds
			cancel()
		}
	}}
	all := doPhase(t, ctx, p, l)
	if all.cutShort != 4 || all.ok.Load() != 0 || all.failed != [failures]int64{} {
		t.Errorf("%d cut short, %d ok, %v failed", all.cutShort, all.ok.Load(), all.failed)
	}
	if len(l.held) > 0 {
		t.Errorf("still held: %v", l.held)
	}
	for _, h := range all.holds {
		if h.Released == 0 {
			t.Errorf("%v", h)
		}
	}
	if len(all.holds) == 0 {
		t.Error("nothing was held")
	}
}

func TestWorkersDoNotShareTheirOwnKeys(t *testing.T) {
	s := settings{workers: 100, keys: 3}
	p := s.phases()
	seen := make(map[string]bool)
	for w := range s.workers {
		for _, k := range p[0].keys(w) {
			if seen[k] {
				t.Errorf("%s is in two hands", k)
			}
			seen[k] = true
		}
	}
	if a, b := p[1].keys(0), p[1].keys(99); len(a) != 3 || a[0] != b[0] {
		t.Errorf("contended keys %v and %v", a, b)
	}
}

// The same seed draws the same keys.
func TestSeedRepeats(t *testing.T) {
	keys := func(seed uint64) (drawn []string) {
		p := settings{workers: 1, cycles: 50, keys: 9, seed: seed, ttl: time.Second}.phases()[1]
		for _, h := range doPhase(t, t.Context(), p, &fakeLocker{}).holds {
			drawn = append(drawn, h.Key)
		}
		return drawn
	}
	one, again, two := fmt.Sprint(keys(1)), fmt.Sprint(keys(1)), fmt.Sprint(keys(2))
	if one != again || one == two {
		t.Errorf("seed 1: %s\nagain:  %s\nseed 2: %s", one, again, two)
	}
}
