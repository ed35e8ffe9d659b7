package trial

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

// slowLocker takes its time, and may hang until its context ends, or for good.
type slowLocker struct {
	takes time.Duration
	hangs func(key string) bool
	deaf  chan struct{} // nil: it hears that the context ends

	mu   sync.Mutex // guards held
	held int
}

func (l *slowLocker) Acquire(ctx context.Context, key string) (rival.Lease, error) {
	if l.hangs != nil && l.hangs(key) {
		if l.deaf != nil {
			<-l.deaf
			return nil, errors.New("too late")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	return l, nil
}

func (l *slowLocker) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	return nil
}

func (l *slowLocker) Close(context.Context) error { return nil }

func load(s *site, l rival.Locker) *site {
	s.lockers = []rival.Locker{l}
	return s
}

func TestCyclesThatEndInTimeAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLocker{takes: 9 * ms}
		s := load(&site{Task: Task{Workers: 4, WarmUp: 50 * ms, Length: 900*ms + 5*ms}}, l)
		f, err := s.uncontended(t.Context())
		if err != nil || f.Cycles != 4*101 || f.Cut != 0 || f.Failed != 0 || l.held != 0 {
			t.Errorf("%+v, %v, %d held", f, err, l.held)
		}
	})
}

func TestCallsThatHangAreCutAndDoNotHoldUpTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		l := &slowLocker{takes: 9 * ms, deaf: deaf, hangs: func(key string) bool { return strings.HasPrefix(key, "own:2:") }}
		s := load(&site{Task: Task{Workers: 4, Length: 900*ms + 5*ms}}, l)
		began := time.Now()
		f, err := s.uncontended(t.Context())
		if err != nil || f.Cut != 1 || f.Cycles != 3*100 {
			t.Errorf("%+v, %v", f, err)
		}
		if took := time.Since(began); took > s.Length+2*patience {
			t.Errorf("it took %v", took)
		}
		close(deaf)
		synctest.Wait()
	})
}

// A wait that has been given up may leave keys behind, so whoever is about to be
// served is.
func TestWaitsAreLetFinishBeforeTheyAreInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLocker{takes: patience - ms}
		s := load(&site{Task: Task{Workers: 2, Length: 10 * ms}}, l)
		if f, err := s.uncontended(t.Context()); err != nil || f.Cut != 0 || l.held != 0 {
			t.Errorf("%+v, %v, %d held", f, err, l.held)
		}
		l = &slowLocker{hangs: func(string) bool { return true }}
		if f, err := load(s, l).uncontended(t.Context()); err != nil || f.Cut != 2 {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

// handLocker gives the lock to one after the other, or to everybody.
type handLocker struct {
	mu     sync.Mutex
	broken bool
}

func (l *handLocker) Acquire(context.Context, string) (rival.Lease, error) {
	if !l.broken {
		l.mu.Lock()
	}
	return l, nil
}

func (l *handLocker) Release(context.Context) error {
	if !l.broken {
		l.mu.Unlock()
	}
	return nil
}

func (l *handLocker) Close(context.Context) error { return nil }

// A broken lock is measured like any other, and found out.
//
// field-reports: 108
func TestTwoHoldersAtOnceAreSeen(t *testing.T) {
	for _, broken := range []bool{false, true} {
		l := &handLocker{broken: broken}
		s := load(&site{Task: Task{Workers: 4, Length: 50 * ms, Hold: ms}}, l)
		f, err := s.contended(t.Context())
		if err != nil || f.Overlaps > 0 != broken {
			t.Errorf("broken %v: %d overlaps, %v", broken, f.Overlaps, err)
		}
	}
}

func TestKeyThatGoesBackToTheSameWorkerIsNoHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := load(&site{Task: Task{Workers: 1, Length: 100 * ms, Hold: ms}}, &slowLocker{})
		f, err := s.contended(t.Context())
		if err != nil || f.Cycles < 99 || f.Contended.Handovers > 1 {
			t.Errorf("%d cycles, %d handovers, %v", f.Cycles, f.Contended.Handovers, err)
		}
	})
}

func TestFaultIsAskedForAndUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		began := time.Now()
		s := load(&site{
			Task: Task{Workers: 2, Length: 300 * ms, Faulty: 200 * ms, After: 100 * ms, Act: Stop, Nodes: []int{0, 1}},
			do: func(act string, nodes []int) error {
				if len(nodes) != 2 {
					t.Errorf("%s of %v", act, nodes)
				}
				asked = append(asked, act+" "+time.Since(began).String())
				return nil
			},
		}, &slowLocker{takes: 9*ms + time.Microsecond})
		f, err := s.fault(t.Context())
		if err != nil || strings.Join(asked, ", ") != "stop 300ms, continue 500ms" {
			t.Errorf("%q, %v", asked, err)
		}
		c := f.Fault
		if c.BeganS != 0.3 || c.EndedS != 0.5 || len(c.Timeline) != 6 || c.After == nil || c.Healthy.Cycles == 0 || c.Faulty.Cycles == 0 || c.After.Cycles == 0 {
			t.Errorf("%+v", *c)
		}
	})
}

func TestFaultThatCannotBeMadeIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("not ours")
		s := load(&site{Task: Task{Workers: 1, Act: Kill}, do: func(string, []int) error { return refused }}, &slowLocker{takes: ms})
		if _, err := s.fault(t.Context()); !errors.Is(err, refused) {
			t.Error(err)
		}
		synctest.Wait()
	})
}
