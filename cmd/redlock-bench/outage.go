package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/quorum"
)

// stretch is from one moment of a drill to another.
type stretch struct{ from, to time.Duration }

// absence is a time during which a node had a fault. Harming and healing take
// time: the fault began some time after began, was there at gone, was still there
// at returning, and the node answered again at back.
type absence struct {
	kind                         faultKind
	began, gone, returning, back time.Duration
}

// absences are the faults of each node, from all acts that were played. A fault that
// nothing has ended lasts until the end.
func absences(acts []played, nodes int, end time.Duration) [][]absence {
	all := make([][]absence, nodes)
	open := make([]bool, nodes) // the last of a node's still lasts
	for _, a := range acts {
		for i, n := range a.nodes {
			back := a.done
			if len(a.back) > 0 {
				back = a.back[i]
			}
			if open[n] { // healed, or killed and now restarted
				last := &all[n][len(all[n])-1]
				last.returning, last.back = a.began, back
				open[n] = false
				if a.kind == faultHeal {
					continue
				}
			}
			if a.kind != faultHeal {
				all[n] = append(all[n], absence{kind: a.kind, began: a.began, gone: a.done, returning: a.began, back: back})
				open[n] = a.kind.lasts()
			}
		}
	}
	for n := range all {
		if open[n] {
			last := &all[n][len(all[n])-1]
			last.returning, last.back = end, end
		}
	}
	return all
}

// atLeast are the stretches during which k or more of the nodes have one of theirs.
// Those of one node may overlap.
func atLeast(k int, nodes [][]stretch) []stretch {
	type edge struct {
		at   time.Duration
		node int
		by   int
	}
	var edges []edge
	for n, own := range nodes {
		for _, s := range own {
			if s.from < s.to {
				edges = append(edges, edge{s.from, n, 1}, edge{s.to, n, -1})
			}
		}
	}
	// Where one ends as another begins there is no gap between them.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	depth := make([]int, len(nodes))
	var found []stretch
	there, begun := 0, time.Duration(0)
	for _, e := range edges {
		before := there
		was := depth[e.node] > 0
		depth[e.node] += e.by
		if is := depth[e.node] > 0; is != was {
			there += e.by
		}
		switch {
		case before < k && there >= k:
			begun = e.at
		case before >= k && there < k:
			found = append(found, stretch{begun, e.at})
		}
	}
	return found
}

// outages are what the faults of a drill came to for the nodes together.
type outages struct {
	some   []stretch // at least one node was or may have been at fault, or was in quarantine
	many   []stretch // so many that the others are no quorum
	broken []stretch // so many were or may have been silent, quarantine left aside
	surely []stretch // so many surely were, or had to be in quarantine
}

// findOutages makes them of the acts that were played. need is how long a node that
// has restarted is in quarantine, which is not less than maxTTL from when its process
// began; 0 if there is none.
func findOutages(acts []played, nodes int, need, maxTTL, end time.Duration) outages {
	var may, silent, surely [][]stretch
	for _, own := range absences(acts, nodes, end) {
		var m, s, c []stretch
		for _, a := range own {
			tail, rest := time.Duration(0), time.Duration(0)
			if a.kind.restarts() && need > 0 {
				tail, rest = need, maxTTL
			}
			m = append(m, stretch{a.began, a.back + tail})
			if a.kind.silences() {
				s = append(s, stretch{a.began, a.back})
				c = append(c, stretch{a.gone, a.returning + rest})
			}
		}
		may, silent, surely = append(may, m), append(silent, s), append(surely, c)
	}
	tooMany := nodes - quorum.Majority(nodes) + 1
	return outages{some: atLeast(1, may), many: atLeast(tooMany, may), broken: atLeast(tooMany, silent), surely: atLeast(tooMany, surely)}
}

// touch says whether two stretches have a moment in common.
func (s stretch) touch(o stretch) bool { return s.from <= o.to && o.from <= s.to }

func touches(s stretch, some []stretch) bool { return slices.ContainsFunc(some, s.touch) }

// waits are how long acquires took beyond their waits for holders: from when a
// key was last let go, or from the call if nobody had it then. It sorts holds.
func waits(holds []history.Hold) (beyond []time.Duration) {
	slices.SortFunc(holds, func(a, b history.Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Acquired, b.Acquired))
	})
	beyond = make([]time.Duration, len(holds))
	free := time.Duration(0) // since when the key is
	for i, h := range holds {
		if i > 0 && holds[i-1].Key != h.Key {
			free = 0
		}
		beyond[i] = h.Acquired - max(h.Called, min(free, h.Acquired))
		let := h.Until
		if h.Released != 0 {
			let = min(let, h.Released)
		}
		if h.Lost != 0 {
			let = min(let, h.Lost)
		}
		free = max(free, let)
	}
	return beyond
}

// longestGap is the longest stretch without a grant from the beginning to the end.
func longestGap(holds []history.Hold, end time.Duration) stretch {
	moments := []time.Duration{0, end}
	for _, h := range holds {
		if h.Acquired < end {
			moments = append(moments, h.Acquired)
		}
	}
	slices.Sort(moments)
	var longest stretch
	for i, at := range moments[1:] {
		if at-moments[i] > longest.to-longest.from {
			longest = stretch{moments[i], at}
		}
	}
	return longest
}

// firstAfter is when the first grant after a moment came.
func firstAfter(holds []history.Hold, at time.Duration) (first time.Duration, ok bool) {
	for _, h := range holds {
		if h.Acquired > at && (!ok || h.Acquired < first) {
			first, ok = h.Acquired, true
		}
	}
	return first, ok
}

// unfounded are the holds that were asked for and granted while a quorum of the
// nodes surely could not vote.
func unfounded(holds []history.Hold, surely []stretch) (bad []history.Hold) {
	for _, h := range holds {
		if slices.ContainsFunc(surely, func(s stretch) bool { return s.from <= h.Called && h.Acquired <= s.to }) {
			bad = append(bad, h)
		}
	}
	return bad
}
