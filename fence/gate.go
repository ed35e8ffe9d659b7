package fence

import (
	"fmt"
	"sync"
)

// Gate guards one resource of this process, and lets writes to it pass in the
// order of their fences. The zero Gate is ready and has seen no fence. It must
// not be copied, and lives as long as what it guards: a new Gate has forgotten
// what the old one had seen. It keeps one number, however many leases come.
//
// Its methods may be called from several goroutines at once.
type Gate struct {
	mu   sync.Mutex // guards last, and is held while a write runs
	last Token
}

// Do runs write, unless a larger fence than t has come before: then it returns
// an error that wraps [ErrStale], and write does not run. The error of write is
// returned as it is. Once t has come, every smaller fence is refused, whatever
// became of write.
//
// One write runs at a time, and until it has returned all others wait, also
// those with a larger fence. It should be short, should contain the reads that
// it depends on, and must not call Do of the same Gate.
func (g *Gate) Do(t Token, write func() error) error {
	// Only checking t would be simpler to call, and wrong: between a check and
	// a write of the caller's, a larger fence can come and write.
	if err := t.check(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if stale(t, g.last) {
		return fmt.Errorf("fence %s: %w: %s has come before", t, ErrStale, g.last)
	}
	g.last = t
	return write()
}

// stale is whether a resource that has seen last refuses t. Equal fences are the
// same lease, so one lease may write as often as it likes.
func stale(t, last Token) bool { return t < last }
