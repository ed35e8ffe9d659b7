package history

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/fence"
)

func TestStoreTakesNoFenceBelowTheLargest(t *testing.T) {
	var s Store
	for i, test := range []struct {
		key   string
		fence fence.Token
		stale bool
	}{
		{"a", 5, false}, {"a", 5, false}, {"a", 4, true}, {"b", 4, false}, {"a", 7, false}, {"a", 5, true}, {"a", 6, true}, {"a", 7, false}, {"b", 3, true},
	} {
		err := s.Append(test.key, test.fence, fmt.Sprint(i))
		if stale := errors.Is(err, fence.ErrStale); stale != test.stale || !stale && err != nil {
			t.Errorf("append %d: %v", i, err)
		}
	}
	want := []Entry{{"a", 5, "0"}, {"a", 5, "1"}, {"b", 4, "3"}, {"a", 7, "4"}, {"a", 7, "7"}}
	log := s.Log()
	if !slices.Equal(log, want) {
		t.Errorf("log %v, want %v", log, want)
	}
	log[0].Element = "changed"
	if s.Log()[0] != want[0] {
		t.Error("whoever has a log can change the store")
	}
}

func TestStoreRefusesWhatIsNoFence(t *testing.T) {
	var s Store
	for _, f := range []fence.Token{0, -1, 1 << 53} {
		if err := s.Append("k", f, "e"); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if len(s.Log()) != 0 {
		t.Errorf("log %v", s.Log())
	}
}

// Whoever appends at the same time, the log is in order, and has what was
// acknowledged and nothing else.
func TestStoreMayBeUsedByMany(t *testing.T) {
	var s Store
	var group sync.WaitGroup
	var mu sync.Mutex
	run := Run{TimingBroken: true}
	for holder := range 8 {
		group.Go(func() {
			for i := range 200 {
				e := Entry{fmt.Sprint("k", i%2), fence.Token(1 + i/2*8 + holder), fmt.Sprint(holder, ".", i)}
				a := Append{Entry: e, Holder: holder, Lease: 1 + i/2, Outcome: OK}
				if err := s.Append(e.Key, e.Fence, e.Element); err != nil {
					a.Outcome = Fail
				}
				mu.Lock()
				run.Appends = append(run.Appends, a)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	run.Log = s.Log()
	if v := run.Judge(); !v.Clean() || v.Appended < 2 {
		t.Errorf("%d appended: %v", v.Appended, v.Faults())
	}
}
