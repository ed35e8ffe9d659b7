package idempotency

import (
	"bytes"
	"fmt"
)

// Result is what came of an intent. A refusal for good, such as nothing left in
// stock, is one too: a retry gets it again.
type Result struct {
	// Response is what is replayed, in a form of the caller's.
	Response []byte

	// Tombstone says that it has been done and that Response is not all that there
	// was to say: too much to store, or a secret. A retry does not run and gets
	// [ErrNotReplayable], and what there is of Response.
	Tombstone bool
}

// How a Result is stored: one byte that says what follows. It is a letter, so
// that a response which is text stays one.
const (
	replayable = 'r'
	tombstone  = 't'
	sealed     = 's'
)

func (r Result) encode() []byte {
	form := byte(replayable)
	if r.Tombstone {
		form = tombstone
	}
	return append([]byte{form}, r.Response...)
}

func decode(b []byte) (Result, error) {
	if len(b) > 0 && (b[0] == replayable || b[0] == tombstone) {
		return Result{Response: bytes.Clone(b[1:]), Tombstone: b[0] == tombstone}, nil
	}
	return Result{}, fmt.Errorf("%w: what is stored is not of a known form", ErrNotReplayable)
}
