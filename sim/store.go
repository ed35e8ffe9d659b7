package sim

import (
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// store is a list that is read and written back as a whole, under a lock, and
// checks fences. No append that it has acknowledged may be lost, however late a
// write comes.
type store struct {
	last fence.Token
	list []fence.Token
	acks int
}

// visit has a holder append to the store: claim it, read it, and write it back, each
// some time after the other and whatever has become of the lease by then.
func (s *store) visit(w *world, h *hold) {
	d := w.dice.on(forStore, hashOf(h.name), uint64(h.client.id), uint64(h.from))
	if d.chance(0.3) {
		return
	}
	var seen []fence.Token
	writes := 1 + d.below(2)
	var write func()
	lag := func() time.Duration { return d.about(20*time.Microsecond, w.plan.TTL*3/2) }
	write = func() {
		if h.fence < s.last {
			w.count("stale write")
			return
		}
		if len(s.list) != len(seen) {
			w.violates("%s writes %s back, and an append of somebody else's is lost", h.client.name, h.name)
		}
		s.last = h.fence
		seen = append(seen[:len(seen):len(seen)], h.fence)
		s.list = seen
		s.acks++
		if writes--; writes > 0 {
			w.at(w.now+lag(), h.client.rank(rankJudge), true, write)
		}
	}
	w.at(w.now+lag(), h.client.rank(rankJudge), true, func() {
		if h.fence < s.last {
			if w.plan.exclusive() && h.open(w.now) {
				w.violates("%s holds %s, and its fence is refused", h.client.name, h.name)
			}
			w.count("stale claim")
			return
		}
		s.last = h.fence
		seen = s.list
		w.at(w.now+lag(), h.client.rank(rankJudge), true, write)
	})
}
