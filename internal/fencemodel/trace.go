package fencemodel

import (
	"fmt"
	"strings"
)

// Trace is a run, step by step.
type Trace struct {
	nodes int
	first state
	steps []move
}

// Len is the number of steps.
func (t Trace) Len() int { return len(t.steps) }

// String has a line for each step, in words and with the nodes as they are
// afterwards: who owns the lock there, and the counter.
func (t Trace) String() string {
	var b strings.Builder
	line := func(i int, text string, s *state) {
		fmt.Fprintf(&b, "%3d  %-46s", i, text)
		for _, node := range s.nodes[:t.nodes] {
			fmt.Fprintf(&b, "  %s %d", name(node.Owner), node.Counter)
		}
		b.WriteByte('\n')
	}
	line(0, "owner and counter of each node at first", &t.first)
	for i := range t.steps {
		line(i+1, t.steps[i].step.String(), &t.steps[i].to)
	}
	return b.String()
}

// trace goes a way again. Its keys do not say how nodes and attempts are
// numbered; in the trace all keep the numbers that they have in the first
// state.
func (m *Model) trace(way []key) Trace {
	s := m.unpack(way[0])
	t := Trace{nodes: m.Nodes, first: s}
	for _, k := range way[1:] {
		for _, next := range m.moves(&s, nil) {
			if m.key(&next.to) == k {
				t.steps = append(t.steps, next)
				s = next.to
				break
			}
		}
	}
	return t
}

// step is what happens in a move.
type step struct {
	what    what
	attempt int
	node    int
	fence   Counter
	unheard bool // the client never learns of it
}

type what uint8

const (
	begins what = iota
	grants
	chooses
	stamps
	returns
	givesUp
	ends
	releases
	expires
	loses
)

func (s step) String() string {
	a, n := name(token(s.attempt)), s.node+1
	unheard := ""
	if s.unheard {
		unheard = ", unheard"
	}
	switch s.what {
	case begins:
		return a + " begins"
	case grants:
		return fmt.Sprintf("node %d grants %d to %s%s", n, s.fence, a, unheard)
	case chooses:
		return fmt.Sprintf("%s chooses %d, the largest of a majority", a, s.fence)
	case stamps:
		return fmt.Sprintf("%s's stamp %d is good on node %d%s", a, s.fence, n, unheard)
	case returns:
		return fmt.Sprintf("%s returns fence %d", a, s.fence)
	case givesUp:
		return a + " gives up"
	case ends:
		return a + "'s hold ends"
	case releases:
		return fmt.Sprintf("%s's release reaches node %d", a, n)
	case expires:
		return fmt.Sprintf("%s's key on node %d expires", a, n)
	case loses:
		return fmt.Sprintf("node %d loses its data", n)
	}
	panic("fencemodel: a step without a name")
}

func name(t Token) string { return "-ABC"[t : t+1] }
