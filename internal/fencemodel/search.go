package fencemodel

import "fmt"

// Result is what a search has found.
type Result struct {
	States int      // visited, of those from which something may still break
	Depth  int      // how many steps the last of them is away
	Broken Property // Intact: the world is exhausted, and nothing breaks in it
	Trace  Trace    // a shortest way to break it
}

func (r Result) String() string {
	if r.Broken == Intact {
		return fmt.Sprintf("%d states visited, the last after %d steps: exhausted", r.States, r.Depth)
	}
	return fmt.Sprintf("%d states visited: not %v after %d steps\n%v", r.States, r.Broken, len(r.Trace.steps), r.Trace)
}

// Search visits the states of the model, the nearest first, until a property
// breaks or there are no more. It panics if the model is larger than its fields
// allow. A state takes some 60 bytes.
func (m *Model) Search() Result {
	if m.Nodes > maxNodes || m.Attempts > maxAttempts || m.keyBits() > 128 ||
		m.Sends >= 1<<sendsBits || m.Losses >= 1<<lossesBits {
		panic("fencemodel: model too large")
	}
	seen := newVisited()
	for _, s := range m.first() {
		seen.add(m.key(&s), none)
	}
	var list []move
	for i := 0; i < len(seen.keys); i++ {
		s := m.unpack(seen.keys[i])
		list = m.moves(&s, list[:0])
		for j := range list {
			next := &list[j]
			if next.step.what == returns {
				if p := m.breaks(&s, next.step.attempt, next.step.fence); p != Intact {
					way := append(seen.way(i), m.key(&next.to))
					return Result{States: len(seen.keys), Depth: len(way) - 1, Broken: p, Trace: m.trace(way)}
				}
			}
			if !m.settled(&next.to) {
				seen.add(m.key(&next.to), i)
			}
		}
	}
	last := len(seen.keys) - 1
	return Result{States: len(seen.keys), Depth: len(seen.way(last)) - 1}
}
