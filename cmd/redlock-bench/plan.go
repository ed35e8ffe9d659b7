package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// act is a cue whose nodes have been chosen.
type act struct {
	kind  faultKind
	nodes []int // from 0, in order
	delay time.Duration
	at    time.Duration
}

// String is the act as people are told.
func (a act) String() string {
	text := fmt.Sprintf("%s %s", a.kind, nodeNames(a.nodes))
	if a.delay > 0 {
		text += fmt.Sprintf(" by %v", a.delay)
	}
	return text
}

// nodeNames are the names of nodes: n1, n2.
func nodeNames(nodes []int) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = fmt.Sprint("n", n+1)
	}
	return strings.Join(names, ", ")
}

// plan chooses the nodes of each cue, always the same for one seed. A node has
// one fault at a time: a number of nodes is chosen among those that have none, and
// for heal among those that have one. Only a killed node may be restarted or wiped
// without being healed first.
func plan(cues []cue, nodes int, seed uint64) ([]act, error) {
	chance := rand.New(rand.NewPCG(seed, 0))
	fault := make([]faultKind, nodes) // of each node; "" for none
	var acts []act
	harm := false
	for _, s := range cues {
		chosen, err := s.choose(fault, chance)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s.text, err)
		}
		for _, n := range chosen {
			fault[n] = ""
			if s.kind.lasts() {
				fault[n] = s.kind
			}
		}
		harm = harm || s.kind != faultHeal
		acts = append(acts, act{kind: s.kind, nodes: chosen, delay: s.delay, at: s.at})
	}
	if !harm {
		return nil, errNoFaults
	}
	return acts, nil
}

// choose are the nodes of a cue, where each has the fault it has by then.
func (s cue) choose(fault []faultKind, chance *rand.Rand) ([]int, error) {
	healing := s.kind == faultHeal
	var able []int
	for n, f := range fault {
		if (f != "") == healing {
			able = append(able, n)
		}
	}
	switch {
	case len(s.nodes) > 0:
		for _, n := range s.nodes {
			revived := fault[n] == faultKill && s.kind.restarts() && s.kind != faultKill
			switch {
			case slices.Contains(able, n) || revived:
			case healing:
				return nil, fmt.Errorf("n%d has no fault then", n+1)
			default:
				return nil, fmt.Errorf("n%d has a fault then already, %s: heal it first", n+1, fault[n])
			}
		}
		return slices.Sorted(slices.Values(s.nodes)), nil
	case healing && len(able) == 0:
		return nil, fmt.Errorf("no node has a fault then")
	case healing && s.count == 0:
		return able, nil
	case healing && s.count > len(able):
		return nil, fmt.Errorf("%d nodes to heal, and only %d have a fault then", s.count, len(able))
	case s.count > len(able):
		return nil, fmt.Errorf("%d nodes wanted, and only %d of %d have no fault then", s.count, len(able), len(fault))
	}
	chance.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	return slices.Sorted(slices.Values(able[:s.count])), nil
}
