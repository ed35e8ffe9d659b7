package redlock

import (
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// errSilent is why a node's vote is unknown when its answer has not come by the
// time the round ended.
var errSilent = errors.New("no answer so far")

// round is one operation asked of all nodes at once, and the ballot of their
// answers. It decides as soon as it can, and goes on taking late answers.
type round struct {
	op    Op
	start clock.Instant // read before anything was sent
	calls []call        // one per node
	all   bool          // it takes every node to decide

	mu     sync.Mutex // guards what follows, and each call's answer and rtt
	ballot quorum.Ballot
	told   chan<- struct{}          // of the call that waits for the ballot to decide; nil if none does
	spare  int                      // releases with nothing to release
	follow func(i int, reply Reply) // told of each answer, without mu

	few [5]call // room for calls
}

// call is one node's part of a round.
type call struct {
	op    *Op    // of all the round
	round *round // nil if nobody counts its answer
	of    *call  // for a release or an extend: the acquire of its key on this node

	answer *Reply        // as the ballot has it, nil if it has none; guarded by round.mu
	rtt    time.Duration // guarded by round.mu
	node   int32         // the voter's number
	came   bool          // the answer is the lane's; guarded by round.mu
	spare  bool          // for a release: there is nothing to release; guarded by round.mu

	// What follows is guarded by lane.mu; the reply does not change once it has been
	// given to the round.
	state  callState
	undo   bool   // what this acquire sets is to be released at once
	cutOff bool   // the connection it was written to ended before the answer came
	gen    int32  // the number of that connection
	reply  *Reply // nil until it is answered
	debt   *debt  // what this release pays
	extend *call  // the last extend of what this acquire has set
}

type callState uint8

const (
	idle callState = iota
	queued
	written
	answered
	withdrawn // it never left the queue
)

// qualify makes the node's reply what the ballot is to have. A grant that comes with
// an error is in quarantine, and one without the fence that it should have counts as
// little. A stamp that finds nobody's key is no denial: nobody holds the lock, but the
// node no longer knows that it granted it.
func (c *call) qualify(reply *Reply) {
	switch {
	case reply.Vote == quorum.Granted && reply.Err != nil:
		reply.Vote = quorum.Unknown
	case c.op.Kind == OpAcquire && c.op.Counter != "" && reply.Vote == quorum.Granted && !reply.Fence.Valid():
		reply.Vote, reply.Err = quorum.Unknown, errNoFence
	case c.op.Kind == OpStamp && reply.Vote == quorum.Denied && reply.Holder == "":
		reply.Vote, reply.Err = quorum.Unknown, errGone
	}
}

// plainGrant is what nearly all replies are. It is shared, and does not change.
var plainGrant = Reply{Vote: quorum.Granted}

// settled is a reply that stays as it is.
func settled(reply *Reply) *Reply {
	if *reply == plainGrant {
		return &plainGrant
	}
	own := *reply
	return &own
}

// newRound prepares the same operation for n nodes.
func newRound(n int, op Op, start clock.Instant) *round {
	r := &round{
		op:     op,
		start:  start,
		ballot: quorum.NewBallot(n),
	}
	if n <= len(r.few) {
		r.calls = r.few[:n]
	} else {
		r.calls = make([]call, n)
	}
	for i := range r.calls {
		r.calls[i] = call{op: &r.op, round: r, node: int32(i)}
	}
	return r
}

// send queues the round's calls with all lanes.
func (r *round) send(lanes []*lane) {
	for i := range lanes {
		r.sendOne(lanes, i)
	}
}

// sendOne queues the call for one node.
func (r *round) sendOne(lanes []*lane, i int) {
	switch err := lanes[i].submit(&r.calls[i], r.start); {
	case err == errNothing:
		r.setAside(i)
	case err != nil:
		r.answer(i, &Reply{Vote: quorum.Unsent, Err: err}, r.start)
	}
}

// vote is what a node has said by now.
func (r *round) vote(i int) quorum.Vote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ballot.Vote(i)
}

// denied reports whether a node has said that somebody else has the key.
func (r *round) denied() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ballot.Tally().Denied > 0
}

// setAside keeps the vote of a node that has nothing to release until the others
// have voted: the key is as free there as if it had been deleted, but a node that
// was not reached says nothing of those that still hold it.
func (r *round) setAside(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.over()
	r.calls[i].spare = true
	r.spare++
	if !before && r.over() {
		r.decide()
	}
}

// answer counts a node's reply. It may be called for a call that has been
// given up: the ballot then takes it as a late vote.
func (r *round) answer(i int, reply *Reply, now clock.Instant) {
	r.mu.Lock()
	r.calls[i].came = true
	r.count(i, reply, now.Lower(r.start))
	follow := r.follow
	r.mu.Unlock()
	if follow != nil {
		follow(i, *reply)
	}
}

// each calls f for every node's answer, once: here for those that have come, and
// for the others as they come. With nil, nothing is called for the others.
func (r *round) each(f func(i int, reply Reply)) {
	var came []int
	r.mu.Lock()
	r.follow = f
	for i := range r.calls {
		if f != nil && r.calls[i].came {
			came = append(came, i)
		}
	}
	r.mu.Unlock()
	for _, i := range came {
		f(i, *r.calls[i].answer) // an answer that has come stays as it is
	}
}

// count is answer. r.mu is held.
func (r *round) count(i int, reply *Reply, rtt time.Duration) {
	before := r.over()
	r.ballot.Cast(i, reply.Vote)
	r.calls[i].answer, r.calls[i].rtt = reply, rtt
	if !before && r.over() {
		r.decide()
	}
}

// tell has told receive once when the ballot decides; nil takes that back. It reports
// false when the ballot has decided before, and nothing will come.
func (r *round) tell(told chan<- struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over() {
		r.told = nil // finish counts on, but it has been decided
		return false
	}
	r.told = told
	return true
}

// decide wakes who waits. r.mu is held.
func (r *round) decide() {
	if r.told != nil {
		r.told <- struct{}{}
		r.told = nil
	}
}

// over reports whether nothing more is waited for. r.mu is held.
func (r *round) over() bool {
	if r.all {
		return r.ballot.Tally().Pending == 0
	}
	return r.ballot.Outcome() != quorum.Open || r.ballot.Tally().Pending == r.spare
}

// finish stops waiting: what was not sent by now is never sent, releases
// excepted, and what was not answered counts as unknown. It returns the final
// outcome, and the votes that made it unless it is Won.
func (r *round) finish(lanes []*lane) (quorum.Outcome, []Vote) {
	r.mu.Lock()
	if r.over() && (r.spare == 0 || r.ballot.Outcome() != quorum.Open) {
		defer r.mu.Unlock()
		return r.result(lanes)
	}
	var pending []int
	for i := range r.calls {
		if r.ballot.Vote(i) == quorum.Pending {
			pending = append(pending, i)
		}
	}
	r.mu.Unlock()

	for _, i := range pending {
		reply := &Reply{Vote: quorum.Unknown, Err: errSilent}
		if lanes[i].withdraw(&r.calls[i]) {
			reply.Vote = quorum.Unsent
		}
		r.mu.Lock()
		if r.calls[i].spare {
			reply = &Reply{Vote: quorum.Granted}
			r.spare--
		}
		if r.ballot.Vote(i) == quorum.Pending {
			r.count(i, reply, 0)
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result(lanes)
}

// result is the outcome with its votes. r.mu is held.
func (r *round) result(lanes []*lane) (quorum.Outcome, []Vote) {
	if r.ballot.Outcome() == quorum.Won && !r.all {
		return quorum.Won, nil
	}
	return r.ballot.Outcome(), r.votes(lanes)
}

// snapshot lists what each node has said by now.
func (r *round) snapshot(lanes []*lane) []Vote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.votes(lanes)
}

// votes lists what each node has said so far. r.mu is held.
func (r *round) votes(lanes []*lane) []Vote {
	votes := make([]Vote, len(r.calls))
	for i := range r.calls {
		c := &r.calls[i]
		votes[i] = Vote{Node: lanes[i].node.String(), Vote: r.ballot.Vote(i), RTT: c.rtt}
		if c.answer != nil {
			votes[i].Holder, votes[i].Err = c.answer.Holder.Digest(), c.answer.Err
		}
		if why, ok := votes[i].Err.(*QuarantineError); ok {
			votes[i].Quarantined = why.For
		}
		if votes[i].Vote == quorum.Pending { // the others had decided
			votes[i].Vote, votes[i].Err = quorum.Unknown, errSilent
		}
	}
	return votes
}
