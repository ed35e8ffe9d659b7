package fencemodel

import (
	"math/rand/v2"
	"testing"
)

// everything visits all states there are: no two count as one, and none is left
// out as settled. It returns them and how far away the first broken property
// is, or 0.
func everything(m *Model) (states map[state]bool, broken int) {
	states = map[state]bool{}
	front := m.first()
	for depth := 1; len(front) > 0; depth++ {
		var next []state
		for _, s := range front {
			for _, mv := range m.moves(&s, nil) {
				if mv.step.what == returns && m.breaks(&s, mv.step.attempt, mv.step.fence) != Intact {
					return states, depth
				}
				if !states[mv.to] {
					states[mv.to] = true
					next = append(next, mv.to)
				}
			}
		}
		front = next
	}
	return states, 0
}

func TestReductionsLeaveNothingOut(t *testing.T) {
	for _, m := range []Model{
		{Protocol: Shipped(), TimingHolds: true, Nodes: 3, Attempts: 2, Counters: 1, Sends: 1},
		{Protocol: Shipped(), TimingHolds: false, Nodes: 2, Attempts: 2, Counters: 1, Proposals: 2, Sends: 1},
		{Protocol: Shipped(), TimingHolds: true, Nodes: 1, Attempts: 3, Proposals: 2, Sends: 1},
		{Protocol: ResendCounts(Shipped()), TimingHolds: true, Nodes: 2, Attempts: 2, Sends: 2},
	} {
		states, broken := everything(&m)
		if broken != 0 {
			t.Fatalf("%+v: broken at depth %d", m, broken)
		}
		for _, s := range m.first() {
			states[s] = true
		}
		keys := map[key]bool{}
		for s := range states {
			if !m.settled(&s) {
				keys[m.key(&s)] = true
			}
		}
		result := m.Search()
		t.Logf("%d states visited for %d", result.States, len(states))
		if result.Broken != Intact || result.States != len(keys) {
			t.Errorf("%d nodes, %d attempts: broken: %v, %d states visited of %d", m.Nodes, m.Attempts, result.Broken, result.States, len(keys))
		}
	}
}

func TestReductionsLeaveNoTraceLonger(t *testing.T) {
	m := Model{Protocol: Shipped(), TimingHolds: true, Nodes: 3, Attempts: 2, Sends: 1, Losses: 1}
	_, broken := everything(&m)
	if result := m.Search(); result.Trace.Len() != broken {
		t.Errorf("%d steps, and without reductions %d", result.Trace.Len(), broken)
	}
}

func TestKeyForgetsOnlyTheNumbering(t *testing.T) {
	m := Model{Protocol: Shipped(), Nodes: 3, Attempts: 3, Counters: 2, Proposals: 3, Sends: 2, Losses: 1}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := m.first()[random.IntN(len(m.first()))]
		for range 30 {
			k := m.key(&s)
			if renumbered := renumber(&m, &s, random); m.key(&renumbered) != k {
				t.Fatalf("two keys, of\n%+v\nand\n%+v", s, renumbered)
			}
			back := m.unpack(k)
			if m.key(&back) != k {
				t.Fatalf("the key of\n%+v\nleads to\n%+v", s, back)
			}
			list := m.moves(&s, nil)
			if len(list) == 0 {
				break
			}
			s = list[random.IntN(len(list))].to
		}
	}
}

// renumber gives the nodes and attempts of s other numbers.
func renumber(m *Model, s *state, random *rand.Rand) state {
	nodes, attempts := random.Perm(m.Nodes), random.Perm(m.Attempts)
	to := state{losses: s.losses}
	for a, newA := range attempts {
		to.attempts[newA] = s.attempts[a]
		for n, newN := range nodes {
			to.attempts[newA].at[newN] = s.attempts[a].at[n]
		}
	}
	for n, newN := range nodes {
		node := s.nodes[n]
		if node.Owner != 0 {
			node.Owner = token(attempts[node.Owner-1])
		}
		to.nodes[newN] = node
	}
	return to
}

func TestVisitedKeepsEveryKeyOnce(t *testing.T) {
	seen := newVisited()
	const n = 200_000
	for range 2 {
		for i := range uint64(n) {
			seen.add(key{i % 3, i}, int(i)-1)
		}
	}
	if len(seen.keys) != n {
		t.Fatalf("%d keys of %d", len(seen.keys), n)
	}
	for i, k := range seen.way(n - 1) {
		if k != (key{uint64(i) % 3, uint64(i)}) {
			t.Fatalf("key %d is %v", i, k)
		}
	}
}
