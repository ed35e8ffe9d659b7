package cluster

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// record is what clients have written down so far. One goroutine uses it.
type record struct {
	t      *testing.T
	file   *os.File
	rest   []byte // the beginning of a line
	events []history.Event
	grants []time.Duration // when leases were got, about in order
}

func newRecord(t *testing.T) *record {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "history.jsonl"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &record{t: t, file: f}
}

// read takes what has been written since, and returns it.
func (r *record) read() []history.Event {
	r.t.Helper()
	text, err := io.ReadAll(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	text = append(r.rest, text...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	r.rest = bytes.Clone(text[whole:])
	fresh, err := history.Read(bytes.NewReader(text[:whole]))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range fresh {
		if e.Op == history.OpAcquire && e.Outcome == history.OK {
			r.grants = append(r.grants, e.At)
		}
	}
	r.events = append(r.events, fresh...)
	return fresh
}

// since is how many leases were got after a moment.
func (r *record) since(at time.Duration) (n int) {
	r.read()
	// Those who write do so one after the other, but for the time between a look at
	// the clock and the writing.
	const unordered = time.Second
	for i := len(r.grants) - 1; i >= 0 && r.grants[i] > at-unordered; i-- {
		if r.grants[i] > at {
			n++
		}
	}
	return n
}
