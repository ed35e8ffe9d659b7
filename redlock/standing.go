package redlock

import (
	"errors"
	"fmt"
	"time"
)

// QuarantineError is why a node's grant does not count: it may have forgotten a
// lock that is still held.
type QuarantineError struct {
	For    time.Duration // how much longer
	Why    string        // "restarted 3s ago"
	MaxTTL time.Duration // the longest that such a lock may last
}

// Error says how long it lasts, and why.
func (e *QuarantineError) Error() string {
	return fmt.Sprintf("quarantined for %v more: %s, MaxTTL %v", inWords(e.For), e.Why, e.MaxTTL)
}

// inWords is d as precise as a person wants it, never less than it is.
func inWords(d time.Duration) time.Duration {
	unit := time.Second
	if d < time.Second {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}

// errNoVoter is why a lane takes no work although its node answers.
var errNoVoter = errors.New("not a voter")
