package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// Inspection is what the nodes said about a key at one moment. It is out of
// date when it is read: it is for people and for metrics, never for deciding who
// may go ahead.
type Inspection struct {
	Key string
	// Held: a majority of nodes holds the key for one lease.
	Held bool
	// Holder is the digest of that lease's token.
	Holder string
	// Remaining is how long a majority will hold it if nobody extends it.
	Remaining time.Duration
	// Votes has what each node holds: granted with a holder, denied if it has no
	// such key, and denied with an Err if the key is of a type that no lock has.
	Votes []Vote
}

// Inspect asks all nodes who holds key, and waits for all of them, or for
// Config.NodeTimeout. If those that did not answer could change the result, the
// error is ErrNoQuorum, and the Inspection says what is known.
func (l *Locker) Inspect(ctx context.Context, key string) (*Inspection, error) {
	if err := l.cfg.checkKey(key); err != nil {
		return nil, err
	}
	begun := l.clock.Now()
	failure := func(votes []Vote, cause error) error {
		return &AttemptError{
			Op: "inspect", Key: key, Attempts: min(1, len(votes)), Votes: votes,
			Elapsed: l.clock.Now().Lower(begun), causes: []error{cause},
		}
	}
	if !l.begin() {
		return nil, failure(nil, ErrClosed)
	}
	defer l.finish()
	if err := l.awaitNodes(ctx); err != nil {
		return nil, failure(nil, err)
	}
	r := newRound(len(l.lanes), Op{Kind: OpInspect, Key: l.prefix(key)}, l.clock.Now())
	r.all = true
	r.send(l.lanes)
	l.wait(r, ctx.Done(), l.closing, l.nodeTimeout)
	_, votes := r.finish(l.lanes)

	seen, certain := r.inspection()
	seen.Key, seen.Votes = key, votes
	if !certain {
		return seen, failure(votes, l.verdict(ctx, quorum.Short))
	}
	return seen, nil
}

// inspection sums up the answers, and reports whether those that are missing
// could not make a difference.
func (r *round) inspection() (*Inspection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holders := make(map[Token][]time.Duration)
	silent := len(r.calls)
	for i := range r.calls {
		answer := r.calls[i].answer
		switch r.ballot.Vote(i) {
		case quorum.Granted:
			holders[answer.Holder] = append(holders[answer.Holder], answer.Remaining)
			silent--
		case quorum.Denied:
			silent--
		}
	}
	majority := quorum.Majority(len(r.calls))
	most := 0
	for holder, left := range holders {
		most = max(most, len(left))
		if len(left) >= majority {
			slices.Sort(left)
			// The majority is gone when one of its last members is.
			return &Inspection{Held: true, Holder: holder.Digest(), Remaining: left[len(left)-majority]}, true
		}
	}
	return &Inspection{}, most+silent < majority
}
