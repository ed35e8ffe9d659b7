// Package fencemodel goes through everything that can happen between a few
// nodes and a few attempts under the fence protocol of redlock, and says
// whether a fence can repeat or run backwards.
//
// The nodes are the scripts as plain functions (Node). Requests, answers,
// stamps and releases may be late, lost or repeated; keys may expire and
// attempts may be given up at any moment. An exhausted search proves something
// of the small world that was searched only. That such a world is large enough
// to show what is wrong is seen on the protocols in variants.go, which lack a
// rule or two of the shipped one: where a rule matters, thirteen steps at most
// lead to a broken property.
package fencemodel

// Model is a protocol in a world small enough to be searched whole.
type Model struct {
	Protocol
	TimingHolds bool    // no key expires that an attempt or a lease still relies on
	Nodes       int     // at most 5
	Attempts    int     // at most 3, and with more than 3 nodes at most 2
	Counters    Counter // the lowest counter begins at 0, the others anywhere up to here
	Proposals   Counter // a node is proposed anything up to here, at each grant anew
	Sends       int     // how often a node may carry out one request, at most 3; see request
	Losses      int     // how many times a node may lose its data, at most 3
}

const (
	maxNodes    = 5
	maxAttempts = 3
)

// state is the nodes and the attempts at one moment. Messages need no room of
// their own: a request not yet carried out may be carried out at any later time
// or never; a stamp or a release may be, again and again, from the moment it
// exists.
type state struct {
	nodes    [maxNodes]Node
	attempts [maxAttempts]attempt
	losses   uint8 // still to come
}

// attempt is what there is to know about one attempt. What no longer matters to
// what may follow is zero.
type attempt struct {
	phase phase
	fence Counter // from the moment it is chosen
	floor Counter // the largest fence returned before it began; until it returns
	at    [maxNodes]dealings
}

// dealings are those of an attempt with one node.
type dealings struct {
	sends uint8   // how often its request may still be carried out
	heard Counter // the fence with which the client counts the node; until it returns
}

type phase uint8

const (
	idle     phase = iota
	asking         // hears grants
	overdue        // hears grants, too late to return
	stamping       // has chosen its fence
	holding        // has returned it
	ended          // holds no longer
	failed         // never will
)

func (p phase) listening() bool { return p == asking || p == overdue || p == stamping }
func (p phase) mayReturn() bool { return p == idle || p == asking || p == stamping }
func (p phase) returned() bool  { return p == holding || p == ended }

func token(attempt int) Token { return Token(attempt + 1) }

func (m *Model) majority() int { return m.Nodes/2 + 1 }

// first lists the states in which a search begins: nothing is held and nothing
// is under way. Nodes are interchangeable, so their counters may as well be in
// order, and only differences between counters matter, so the lowest is 0.
func (m *Model) first() []state {
	states := []state{{losses: uint8(m.Losses)}}
	for n := 1; n < m.Nodes; n++ {
		var longer []state
		for _, s := range states {
			for c := s.nodes[n-1].Counter; c <= m.Counters; c++ {
				s.nodes[n].Counter = c
				longer = append(longer, s)
			}
		}
		states = longer
	}
	return states
}
