package history

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// Op is what an event is about.
type Op string

// What clients do, and OpLost, which they are told.
const (
	OpAcquire Op = "acquire"
	OpExtend  Op = "extend"
	OpRelease Op = "release"
	OpAppend  Op = "append" // to a guarded store
	OpLost    Op = "lost"
)

// Outcome is what became of an operation. The zero Outcome is that of a call:
// nothing yet.
type Outcome string

// Unknown is also the outcome of what was called and never returned: it may
// have done what it was to do, and may still do it, until the end of the run.
const (
	OK      Outcome = "ok"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
)

// Event is something that a client did or was told, as it saw it. An operation
// has an event for its call, without an outcome, taken just before it, and one
// for its return, taken just after. Only the call of acquire and append and the
// return of acquire and extend are needed; a return that is missing is Unknown.
//
// It holds no secrets: of a token it has the digest.
type Event struct {
	At      time.Duration `json:"at_ns"`  // above 0
	Client  int           `json:"client"` // a number of the run's own choice, from 0
	Lease   int           `json:"lease"`  // the client's number, from 1, for the acquire and for the lease that came of it
	Op      Op            `json:"op"`
	Outcome Outcome       `json:"outcome,omitempty"`
	Key     string        `json:"key"` // that of the lease, also in what is appended under it

	// What acquire returned; Until, validity's end, also with an extension. Of
	// Votes nothing but people take notice.
	Token string            `json:"token,omitempty"`
	Fence fence.Token       `json:"fence,omitempty"`
	Until time.Duration     `json:"until_ns,omitempty"`
	Votes map[string]string `json:"votes,omitempty"` // by node, in the words of quorum.Vote

	Element string `json:"element,omitempty"` // what was appended, different each time
}

// check says what about an event cannot be. A fence that cannot be is none of
// that: what a lock hands out is judged, not refused.
func (e Event) check() error {
	won := e.Op == OpAcquire && e.Outcome == OK
	switch {
	case e.At <= 0:
		return errors.New("at_ns: want a number above 0")
	case e.Client < 0:
		return errors.New("client: want a number from 0")
	case e.Lease < 1:
		return errors.New("lease: want a number from 1")
	case !utf8.ValidString(e.Key + e.Element):
		return errors.New("key, element: want UTF-8") // JSON would make several such into one
	case e.Op != OpAcquire && e.Op != OpExtend && e.Op != OpRelease && e.Op != OpAppend && e.Op != OpLost:
		return fmt.Errorf("op %q: want acquire, extend, release, append or lost", e.Op)
	case e.Outcome != "" && e.Outcome != OK && e.Outcome != Fail && e.Outcome != Unknown:
		return fmt.Errorf("outcome %q: want ok, fail, unknown or none", e.Outcome)
	case e.Op == OpLost && e.Outcome != "":
		return errors.New("outcome: lost has none")
	case won || e.Op == OpExtend && e.Outcome == OK:
		// Without it a hold would never have been one, and overlap nothing.
		if e.Until <= 0 {
			return errors.New("until_ns: a lease ends, want a number above 0")
		}
	case e.Until != 0:
		return errors.New("until_ns: only what acquire and extend return has one")
	}
	switch {
	case e.Fence != 0 && !won:
		return errors.New("fence: only a lease that acquire returns has one")
	case e.Token != "" && !isDigest(e.Token):
		return errors.New("token: want its digest, eight hexadecimal digits") // and nothing of what is there
	case (e.Element != "") != (e.Op == OpAppend):
		return errors.New("element: what is appended has one, nothing else has")
	}
	for node, vote := range e.Votes {
		if !isVote(vote) {
			return fmt.Errorf("votes: %q of %s is no vote", vote, node)
		}
	}
	return nil
}

// isDigest says whether s looks like the digest of a redlock.Token.
func isDigest(s string) bool {
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return len(s) == 8
}

func isVote(s string) bool {
	for v := quorum.Pending; v <= quorum.Unsent; v++ {
		if s == v.String() {
			return true
		}
	}
	return false
}
