package fencemodel

// decide is what a client may do by itself: with a majority of grants return
// their largest fence, if a majority counts with just that one, or else choose
// it and stamp; give up; end its hold.
func (m *Model) decide(s *state, a int, list []move) []move {
	at := &s.attempts[a]
	if at.phase == holding {
		to := *s
		to.attempts[a].phase = ended
		return append(list, move{step{what: ends, attempt: a}, to})
	}
	if !at.phase.listening() {
		return list
	}
	fence, granted, equal := at.tally()
	switch {
	case equal >= m.majority() && at.phase != overdue:
		to := *s
		to.attempts[a].fence = fence
		to.attempts[a].enter(m.afterReturn())
		list = append(list, move{step{what: returns, attempt: a, fence: fence}, to})
	case granted >= m.majority() && at.phase != stamping:
		to := *s
		to.attempts[a].choose(fence, m.TimingHolds)
		list = append(list, move{step{what: chooses, attempt: a, fence: fence}, to})
	}
	to := *s
	to.attempts[a].enter(failed)
	return append(list, move{step{what: givesUp, attempt: a}, to})
}

// afterReturn is the phase of an attempt that has returned. If timing is
// broken, nothing depends on whether it still holds, and its keys go when they
// like.
func (m *Model) afterReturn() phase {
	if m.TimingHolds {
		return holding
	}
	return ended
}

// tally gives the largest fence heard, how many nodes count with any, and how
// many with that one.
func (at *attempt) tally() (fence Counter, granted, equal int) {
	for _, d := range at.at {
		if d.heard == 0 {
			continue
		}
		granted++
		switch {
		case d.heard > fence:
			fence, equal = d.heard, 1
		case d.heard == fence:
			equal++
		}
	}
	return fence, granted, equal
}

// choose settles the fence. Grants of lesser ones stay only as keys that the
// attempt relies on, which is nothing if timing is broken.
func (at *attempt) choose(fence Counter, timingHolds bool) {
	at.fence = fence
	if at.phase == overdue {
		at.enter(failed)
		return
	}
	at.phase = stamping
	if timingHolds {
		return
	}
	for n := range at.at {
		if at.at[n].heard != fence {
			at.at[n].heard = 0
		}
	}
}

// enter begins a phase in which it no longer matters what was heard.
func (at *attempt) enter(p phase) {
	at.phase, at.floor = p, 0
	for n := range at.at {
		at.at[n].heard = 0
	}
}
