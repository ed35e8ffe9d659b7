package pgproc

import (
	"bytes"
	"sync"
)

// tail keeps the end of a server's log, and notices the line that says that
// the server takes connections.
type tail struct {
	ready chan struct{} // closed when that line has come

	mu    sync.Mutex // guards what follows
	kept  []byte
	heard bool
}

const tailSize = 64 << 10

var takesConnections = []byte("database system is ready to accept connections")

func newTail() *tail { return &tail{ready: make(chan struct{})} }

// Write takes what the server wrote. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	// Looked for before anything is dropped, and in all that is kept: a write
	// may end in the middle of the words.
	if !t.heard && bytes.Contains(t.kept, takesConnections) {
		t.heard = true
		close(t.ready)
	}
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
