// Package quorum counts votes. It knows neither what is voted on nor when: no
// key, no client and no duration.
//
// Two quorums of the same voters share at least one voter. Everything the lock
// promises rests on that, and so on every client counting a majority of all
// voters there are, never of those it happens to reach.
package quorum

import "strconv"

// Majority is how many of n voters are a quorum: more than half of them. It
// panics when n is not positive.
func Majority(n int) int {
	if n <= 0 {
		panic("quorum: " + strconv.Itoa(n) + " voters")
	}
	return n/2 + 1
}

// Vote is what one voter said. The zero Vote is no answer yet.
type Vote uint8

const (
	// Pending: no answer yet.
	Pending Vote = iota
	// Granted: a definite yes.
	Granted
	// Denied: a definite no.
	Denied
	// Unknown: the voter was asked, and no definite answer will be waited
	// for. It may have done what it was asked, or may still do it.
	Unknown
	// Unsent: the voter was never asked, so it has done nothing.
	Unsent
)

// String is the vote in one word.
func (v Vote) String() string {
	switch v {
	case Pending:
		return "pending"
	case Granted:
		return "granted"
	case Denied:
		return "denied"
	case Unknown:
		return "unknown"
	case Unsent:
		return "unsent"
	}
	return "Vote(" + strconv.Itoa(int(v)) + ")"
}

// Outcome is what a set of votes amounts to.
type Outcome uint8

const (
	// Open: the votes still to come decide.
	Open Outcome = iota
	// Won: a quorum granted.
	Won
	// Refused: so many denied that no quorum could have come about, whatever
	// the silent voters would have said.
	Refused
	// Short: too few voters answered. There is no quorum, and it is not the
	// denials alone that prevent it.
	Short
)

// String is the outcome in one word.
func (o Outcome) String() string {
	switch o {
	case Open:
		return "open"
	case Won:
		return "won"
	case Refused:
		return "refused"
	case Short:
		return "short"
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// Tally is how many voters gave each vote.
type Tally struct {
	Pending, Granted, Denied, Unknown, Unsent int
}

// Voters is the number of voters.
func (t Tally) Voters() int {
	return t.Pending + t.Granted + t.Denied + t.Unknown + t.Unsent
}

// Decide says what the votes amount to. Once it is not Open, no further vote
// changes it.
//
// It stays Open while a quorum can still be reached, and also while only its
// reason is unclear: whether a lock is held by another or its nodes are out of
// reach are two different things to whoever asked.
func Decide(t Tally) Outcome {
	q := Majority(t.Voters())
	refusal := t.Voters() - q + 1 // this many denials leave no room for a quorum
	switch {
	case t.Granted >= q:
		return Won
	case t.Denied >= refusal:
		return Refused
	case t.Granted+t.Pending < q && t.Denied+t.Pending < refusal:
		return Short
	}
	return Open
}

// Ballot takes one vote from each of a fixed set of voters. It decides once,
// and goes on taking late votes after that: they no longer matter to the
// outcome, but who holds what does. A Ballot is not safe for concurrent use.
type Ballot struct {
	votes   []Vote
	tally   Tally
	outcome Outcome
}

// NewBallot returns a ballot of n voters, numbered from 0. It panics when n is
// not positive.
func NewBallot(n int) Ballot {
	Majority(n)
	return Ballot{votes: make([]Vote, n), tally: Tally{Pending: n}}
}

// Cast records voter i's vote and returns the outcome. A voter votes once: the
// second vote of one is ignored, except that Unknown gives way to a definite
// answer that comes late. Casting Pending does nothing.
func (b *Ballot) Cast(i int, v Vote) Outcome {
	old := b.votes[i]
	late := old == Unknown && (v == Granted || v == Denied)
	if v == Pending || (old != Pending && !late) {
		return b.outcome
	}
	b.votes[i] = v
	*b.tally.of(old)--
	*b.tally.of(v)++
	if b.outcome == Open {
		b.outcome = Decide(b.tally)
	}
	return b.outcome
}

// Outcome is the outcome so far. Once it is not Open it stays as it is.
func (b *Ballot) Outcome() Outcome { return b.outcome }

// Vote is voter i's vote.
func (b *Ballot) Vote(i int) Vote { return b.votes[i] }

// Tally is the count of votes, late ones included.
func (b *Ballot) Tally() Tally { return b.tally }

func (t *Tally) of(v Vote) *int {
	switch v {
	case Granted:
		return &t.Granted
	case Denied:
		return &t.Denied
	case Unknown:
		return &t.Unknown
	case Unsent:
		return &t.Unsent
	}
	return &t.Pending
}
