package redlock

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

var (
	errStalled   = errors.New("has not answered for a while, and is sent nothing more until it does")
	errNothing   = errors.New("its acquire was taken back")
	errNeverHeld = errors.New("it never held the key")
)

// lane is the one way to a node. All operations of a Locker on that node queue
// here and go out in flights on one connection, so that a key's acquire, its
// release and the next acquire are carried out in that order. Where the node is far,
// several flights are in the air at once, and none of them has a key of another.
//
// Nobody waits for a lane: a round waits for its ballot. A lane that is not
// connected, or whose flight is overdue, answers Unsent at once; releases that
// it cannot send then become its debts.
type lane struct {
	node      Node
	clock     clock.Clock
	laneTimes // late and stall are guarded by mu
	changed   func(NodeEvent)
	met       func(up bool)            // told once: the first connection was made, or failed
	claim     func(runID string) error // says which other node is that process
	born      clock.Instant
	wake      chan struct{} // capacity 1: there may be something to do

	mu       sync.Mutex // guards what follows
	queue    []*call
	dead     int // calls in the queue that have been pulled
	state    laneState
	reason   error // why it takes no work
	flights  [maxFlights]flight
	carrying int  // how many calls are in the air
	far      bool // several may be, since the node is far
	debts    []debt
	gen      int32  // number of the last connection
	haunted  bool   // a former connection could not be killed, and may still act
	closing  bool   // nothing new will come
	hangUp   func() // cuts the connection, the attempt to make one, or the pause before it
	voter    voter

	forgotten    int // debts given up while their acquires may still lie unread
	forgottenTTL time.Duration

	before *Peer // this belongs to the lane's goroutine

	turn    chan struct{} // capacity 1: held while a flight is put together, and guards what follows
	cutter  cutter
	loading []*call
}

type laneTimes struct {
	late  time.Duration // a flight older than this has been given up by those it was for
	stall time.Duration // a flight older than this stalls the lane
	limit time.Duration // a flight older than this ends the connection
	drift clock.Drift
}

type laneState uint8

const (
	connecting laneState = iota // for the first time: the queue waits for it
	down                        // no work is taken
	open
)

func newLane(n Node, c clock.Clock, t laneTimes, v voter) *lane {
	return &lane{
		node:      n,
		voter:     v,
		clock:     c,
		laneTimes: t,
		born:      c.Now(),
		wake:      make(chan struct{}, 1),
		turn:      make(chan struct{}, 1),
	}
}

// expect makes the lane bear with nodes that take up to nodeTimeout to answer.
func (l *lane) expect(nodeTimeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = max(l.late, nodeTimeout)
	l.stall = max(l.stall, 2*nodeTimeout)
}

// submit queues a call. If the lane takes no work it returns why, and the call
// will never be sent.
func (l *lane) submit(c *call, now clock.Instant) error {
	l.mu.Lock()
	err := l.refusal(now)
	var stranded []*call
	release := c.of != nil && c.op.Kind == OpRelease
	switch {
	case release && (c.of.state == withdrawn || c.of.state == answered && c.of.reply.Nothing):
		c.state, err = withdrawn, errNeverHeld
	case release && l.isLate(now) && l.pull(c.of):
		c.state, err = withdrawn, errNothing
	case err == nil:
		if l.dead > maxFlight && l.dead > len(l.queue)/2 {
			l.queue = slices.DeleteFunc(l.queue, func(c *call) bool { return c.state == withdrawn })
			l.dead = 0
		}
		c.state = queued
		l.queue = append(l.queue, c)
		if release && l.lingers(c.of) {
			l.owe(c, now) // once is not enough
		}
	default:
		c.state = withdrawn
		l.owe(c, now)
		stranded = l.strand(now)
	}
	l.mu.Unlock()
	answerUnsent(stranded, err, now)
	l.rouse()
	return err
}

// standing is why the node does not count at the moment, or nil.
func (l *lane) standing(now clock.Instant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(now); err != nil {
		return err
	}
	if why := l.voter.quarantined(l.at(now), l.at(now)); why != nil {
		return why
	}
	return nil
}

// isLate reports whether what is queued now would be sent late. An acquire whose
// release comes before it was sent is then taken back; otherwise both are about to
// be sent, together, and the node's answer to the release is worth more than what
// it costs. l.mu is held.
func (l *lane) isLate(now clock.Instant) bool {
	return l.state != open || l.underWay(now) > l.late
}

// refusal is why no work is taken at the moment, or nil. l.mu is held.
func (l *lane) refusal(now clock.Instant) error {
	switch {
	case l.state == down:
		return l.reason
	case l.underWay(now) > l.stall:
		return errStalled
	}
	return nil
}

// strand empties the queue of a lane that takes no work, so that it does not
// grow while the node is away. l.mu is held.
func (l *lane) strand(now clock.Instant) []*call {
	var stranded []*call
	for _, c := range l.queue {
		if c.state == queued {
			c.state = withdrawn
			l.owe(c, now)
			stranded = append(stranded, c)
		}
	}
	l.queue, l.dead = nil, 0
	return stranded
}

func answerUnsent(calls []*call, err error, now clock.Instant) {
	for _, c := range calls {
		if c.round != nil {
			c.round.answer(int(c.node), &Reply{Vote: quorum.Unsent, Err: err}, now)
		}
	}
}

// withdraw takes back a call whose round has ended, and reports whether it was
// in time: then it is never sent. A release is not taken back: that nobody waits
// for it any longer does not make it less due.
func (l *lane) withdraw(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.op.Kind != OpRelease && l.pull(c)
}

// pull takes a call back. l.mu is held.
func (l *lane) pull(c *call) bool {
	if c.state == queued {
		c.state = withdrawn // load passes it over
		l.dead++
	}
	return c.state == withdrawn
}

// disown has nothing of an acquire come any more: it is not sent, or released as
// soon as it is answered. What it has set already is left.
func (l *lane) disown(acquire *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pull(acquire) && acquire.state == written {
		acquire.undo = true // land sees to it
	}
}

// undo sees to it that what an acquire has set, or may yet set, for at most ttl,
// is released before anything is sent that is queued after this call.
func (l *lane) undo(acquire *call, ttl time.Duration) {
	l.mu.Lock()
	switch {
	case l.pull(acquire):
	case acquire.state == written:
		acquire.undo = true // land sees to it
	default:
		op := *acquire.op
		op.TTL = ttl
		l.owe(&call{op: &op, of: acquire}, l.clock.Now())
	}
	l.mu.Unlock()
	l.rouse()
}

// rouse wakes the lane's goroutine.
func (l *lane) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
