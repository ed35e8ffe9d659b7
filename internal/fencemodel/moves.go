package fencemodel

// move is one thing that may happen, and the state it leads to.
type move struct {
	step step
	to   state
}

// moves appends to list everything that may happen next.
func (m *Model) moves(s *state, list []move) []move {
	begun := false
	for a := range m.Attempts {
		if s.attempts[a].phase == idle {
			if !begun { // of the idle ones, which are all alike
				list = m.begin(s, a, list)
				begun = true
			}
			continue
		}
		for n := range m.Nodes {
			list = m.request(s, a, n, list)
			list = m.stamp(s, a, n, list)
			list = m.release(s, a, n, list)
			list = m.expire(s, a, n, list)
		}
		list = m.decide(s, a, list)
	}
	for n := range m.Nodes {
		list = m.lose(s, n, list)
	}
	return list
}

func (m *Model) begin(s *state, a int, list []move) []move {
	to := *s
	began := &to.attempts[a]
	began.phase = asking
	for n := range m.Nodes {
		began.at[n].sends = uint8(m.Sends)
	}
	for _, other := range s.attempts {
		if other.phase.returned() {
			began.floor = max(began.floor, other.fence)
		}
	}
	return append(list, move{step{what: begins, attempt: a}, to})
}

// request has a node carry out a request. A denial is no move: it changes
// nothing on the node, and the client is free to give up without one. An answer
// is heard at once or never: a client that hears it late does nothing that it
// might not do after waiting. So one execution covers a request that is sent
// again while its key is there; a second is for one that comes after the key,
// and for protocols that let it change something.
func (m *Model) request(s *state, a, n int, list []move) []move {
	asker := &s.attempts[a]
	if asker.at[n].sends == 0 {
		return list
	}
	last := Counter(0)
	for proposal := range m.Proposals + 1 {
		node, fence := m.Acquire(s.nodes[n], token(a), proposal)
		if fence == last { // denied, or the same as for a smaller proposal
			continue
		}
		last = fence
		to := *s
		to.nodes[n] = node
		to.attempts[a].at[n].sends--
		happened := step{what: grants, attempt: a, node: n, fence: fence}
		if asker.phase.listening() {
			heard := to
			heard.attempts[a].hear(n, fence)
			list = append(list, move{happened, heard})
		}
		if node != s.nodes[n] {
			happened.unheard = true
			list = append(list, move{happened, to})
		}
	}
	return list
}

// hear takes a grant into account. The fence, once chosen, stays, and then only
// a grant of just that fence counts.
func (at *attempt) hear(n int, fence Counter) {
	if at.phase != stamping || fence == at.fence {
		at.at[n].heard = fence
	}
}

// stamp has a node carry out a stamp. There is one for every node, even where
// the client would send none: the protocol has to refuse it there.
func (m *Model) stamp(s *state, a, n int, list []move) []move {
	stamper := &s.attempts[a]
	if stamper.fence == 0 {
		return list
	}
	node, good := m.Stamp(s.nodes[n], token(a), stamper.fence)
	happened := step{what: stamps, attempt: a, node: n, fence: stamper.fence}
	if good && stamper.phase == stamping && stamper.at[n].heard != stamper.fence {
		to := *s
		to.nodes[n] = node
		to.attempts[a].at[n].heard = stamper.fence
		list = append(list, move{happened, to})
	}
	if node != s.nodes[n] {
		to := *s
		to.nodes[n] = node
		happened.unheard = true
		list = append(list, move{happened, to})
	}
	return list
}

// release has a node carry out a release, be it before the request or after.
func (m *Model) release(s *state, a, n int, list []move) []move {
	releaser := &s.attempts[a]
	if releaser.phase != ended && releaser.phase != failed {
		return list
	}
	node := m.Release(s.nodes[n], token(a), releaser.fence)
	if node == s.nodes[n] {
		return list
	}
	to := *s
	to.nodes[n] = node
	return append(list, move{step{what: releases, attempt: a, node: n}, to})
}

// expire ends the life of a key. While timing holds, no key of a holder
// expires, and an attempt that counts on the key is past its validity.
func (m *Model) expire(s *state, a, n int, list []move) []move {
	owner := &s.attempts[a]
	if s.nodes[n].Owner != token(a) || m.TimingHolds && owner.phase == holding {
		return list
	}
	to := *s
	to.nodes[n].Owner = 0
	if m.TimingHolds && owner.at[n].heard != 0 {
		to.attempts[a].late()
	}
	return append(list, move{step{what: expires, attempt: a, node: n}, to})
}

// late is for an attempt that can no longer return. It may not know, and stamp
// all the same.
func (at *attempt) late() {
	if at.phase == stamping {
		at.enter(failed)
	} else {
		at.phase = overdue
	}
}

// lose takes all it has from a node.
func (m *Model) lose(s *state, n int, list []move) []move {
	if s.losses == 0 || s.nodes[n] == (Node{}) {
		return list
	}
	to := *s
	to.losses--
	to.nodes[n] = Node{}
	return append(list, move{step{what: loses, node: n}, to})
}
