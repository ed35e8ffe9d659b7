package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// data is what a node keeps, as Redis does: keys that expire by its wall clock, in
// whole milliseconds. What it does with an operation is what the Lua scripts of
// package redlock do; one test holds both to the same contract.
type data struct {
	keys     map[string]key
	counters map[string]counter
}

// key is a lock's key.
type key struct {
	token  redlock.Token
	until  int64 // it is there up to this millisecond; 0: for ever
	noLock bool  // it holds something else, such as a list
	// counts: when it was set, or extended last, every lock that the node had
	// forgotten was over.
	counts bool
}

// counter is the companion of a key.
type counter struct {
	count  fence.Token
	until  int64
	broken bool // it is no number
}

func newData() data {
	return data{keys: map[string]key{}, counters: map[string]counter{}}
}

func (d data) clone() data {
	return data{maps.Clone(d.keys), maps.Clone(d.counters)}
}

// find is what the node has at name at the moment.
func (d data) find(name string, now int64) (key, bool) {
	k, there := d.keys[name]
	if there && k.until != 0 && now > k.until {
		delete(d.keys, name)
		return key{}, false
	}
	return k, there
}

func (d data) counter(name string, now int64) (counter, bool) {
	c, there := d.counters[name]
	if there && now > c.until {
		delete(d.counters, name)
		return counter{}, false
	}
	return c, there
}

const (
	ahead   = fence.Token(time.Second / time.Microsecond)
	largest = fence.Token(1<<53 - 1)
)

var (
	errNoLock    = errors.New("the key holds something that is no lock")
	errWrongType = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")
	errBroken    = errors.New("its fences cannot be counted")
)

// carryOut does what op asks, at wall, the node's clock in time since 1970.
// refuse is what a command that would write gets to hear instead, if not nil.
func (d data) carryOut(op *redlock.Op, wall time.Duration, counts bool, refuse error) redlock.Reply {
	now := wall.Milliseconds()
	px := func(ttl time.Duration) int64 { return now + int64((ttl+time.Millisecond-1)/time.Millisecond) }
	denied := redlock.Reply{Vote: quorum.Denied}
	unknown := func(err error) redlock.Reply {
		nothing := op.Kind == redlock.OpAcquire && (op.Counter == "" || !strings.HasPrefix(err.Error(), "NOPERM"))
		return redlock.Reply{Vote: quorum.Unknown, Err: err, Nothing: nothing && err != errBroken}
	}
	k, there := d.find(op.Key, now)
	if k.noLock {
		k.token = "" // nobody reads it
	}
	ours := there && !k.noLock && k.token == op.Token
	c, counted := d.counter(op.Counter, now)
	switch op.Kind {
	case redlock.OpAcquire:
		fenced := op.Counter != ""
		switch {
		case !fenced && refuse != nil: // refused before it is looked at
			return unknown(refuse)
		case there && k.noLock && !fenced:
			return redlock.Reply{Vote: quorum.Denied, Err: errWrongType}
		case there && !k.noLock && !ours:
			denied.Holder = k.token
			return denied
		case fenced && (c.broken || c.count >= largest || ours && c.count == 0):
			return unknown(errBroken)
		case ours:
			return redlock.Reply{Vote: quorum.Granted, Fence: c.count}
		case there:
			return redlock.Reply{Vote: quorum.Denied, Err: errNoLock}
		case refuse != nil:
			return unknown(refuse)
		}
		d.keys[op.Key] = key{token: op.Token, until: px(op.TTL), counts: counts}
		if !fenced {
			return redlock.Reply{Vote: quorum.Granted}
		}
		limit := fence.Token(wall.Microseconds()) + ahead
		c = counter{count: max(c.count+1, min(op.Fence, limit)), until: px(op.CounterTTL)}
		d.counters[op.Counter] = c
		return redlock.Reply{Vote: quorum.Granted, Fence: c.count}
	case redlock.OpStamp:
		switch {
		case !ours:
			denied.Holder = k.token
			return denied
		case !counted || c.broken:
			return unknown(errBroken)
		case c.count > op.Fence:
			return denied
		case refuse != nil:
			return unknown(refuse)
		}
		d.counters[op.Counter] = counter{count: op.Fence, until: px(op.CounterTTL)}
		return redlock.Reply{Vote: quorum.Granted}
	case redlock.OpExtend:
		switch {
		case !ours:
			denied.Holder = k.token
			return denied
		case refuse != nil && !isOOM(refuse):
			return unknown(refuse)
		}
		if until := px(op.TTL); k.until == 0 || until > k.until {
			k.until = until
		}
		k.counts = counts
		d.keys[op.Key] = k
		if counted {
			c.until = px(op.CounterTTL)
			d.counters[op.Counter] = c
		}
		return redlock.Reply{Vote: quorum.Granted}
	case redlock.OpInspect:
		switch {
		case k.noLock:
			return redlock.Reply{Vote: quorum.Denied, Err: errWrongType}
		case !there:
			return denied
		}
		return redlock.Reply{Vote: quorum.Granted, Holder: k.token, Remaining: time.Duration(k.until-now) * time.Millisecond}
	case redlock.OpRelease:
		switch {
		case !ours:
			denied.Holder = k.token
			return denied
		case refuse != nil && !isOOM(refuse):
			return unknown(refuse)
		}
		delete(d.keys, op.Key)
		return redlock.Reply{Vote: quorum.Granted}
	}
	panic(fmt.Sprintf("sim: an operation of kind %d", op.Kind))
}

// isOOM: only commands that may need memory are refused.
func isOOM(err error) bool { return strings.HasPrefix(err.Error(), "OOM") }

// arranged is a flight as the node is to carry it out: neighbours of one kind in the
// order of their keys. Such operations do not interact, and which of two callers was
// first to queue at one moment is up to the scheduler. The kinds stay in the order
// in which the library has put them, which matters.
func arranged(flight []redlock.Op) []redlock.Op {
	for i := 0; i < len(flight); {
		n := i + 1
		for n < len(flight) && flight[n].Kind == flight[i].Kind {
			n++
		}
		slices.SortStableFunc(flight[i:n], func(a, b redlock.Op) int { return strings.Compare(a.Key, b.Key) })
		i = n
	}
	return flight
}
