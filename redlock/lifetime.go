package redlock

import "sync"

// lifetime is the state of a Locker: open, then closing, when only what is
// under way goes on, and leases are still released; then sealed, when nothing
// starts any more; then closed.
type lifetime struct {
	closing chan struct{} // closed by the first Close
	idle    chan struct{} // closed when sealed
	closed  chan struct{} // closed when the first Close is through
	result  error         // what it returned; set before closed is closed

	stateMu sync.Mutex // guards what follows
	ops     int        // operations under way
	ending  bool
	sealed  bool
}

func newLifetime() lifetime {
	return lifetime{
		closing: make(chan struct{}),
		idle:    make(chan struct{}),
		closed:  make(chan struct{}),
	}
}

// begin starts an operation, unless the Locker is closing. After true, finish
// must be called.
func (l *lifetime) begin() bool {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	if l.ending {
		return false
	}
	l.ops++
	return true
}

// join starts an operation on a lease, which may still be released while the
// Locker is closing. After true, finish must be called.
func (l *lifetime) join() bool {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	if l.sealed {
		return false
	}
	l.ops++
	return true
}

// finish ends an operation.
func (l *lifetime) finish() {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	l.ops--
	if l.ending && l.ops == 0 && !l.sealed {
		l.sealed = true
		close(l.idle)
	}
}

// close begins the end, once: it reports whether this call did. Closing is
// itself an operation, so that nothing is sealed before its releases are out.
func (l *lifetime) close() bool {
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	if l.ending {
		return false
	}
	l.ending = true
	l.ops++
	close(l.closing)
	return true
}
