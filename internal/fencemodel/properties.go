package fencemodel

// Property is what must hold of every run. Unique and Ordered are required
// whatever the timing, Successive and Exclusive only while it holds.
type Property uint8

// The properties, and Intact for none of them being broken.
const (
	Intact     Property = iota
	Unique              // no two attempts return the same fence
	Ordered             // who begins after another has returned gets a larger fence
	Successive          // who returns after another's hold has ended gets a larger fence
	Exclusive           // nobody returns while another holds
)

func (p Property) String() string {
	return [...]string{"intact", "unique", "ordered", "successive", "exclusive"}[p]
}

// breaks says what is broken when attempt a returns fence in s.
func (m *Model) breaks(s *state, a int, fence Counter) Property {
	for i := range m.Attempts {
		if other := &s.attempts[i]; other.phase.returned() && other.fence == fence {
			return Unique
		}
	}
	if fence < s.attempts[a].floor {
		return Ordered
	}
	if !m.TimingHolds {
		return Intact
	}
	for i := range m.Attempts {
		if other := &s.attempts[i]; other.phase == ended && other.fence > fence {
			return Successive
		}
	}
	for i := range m.Attempts {
		if s.attempts[i].phase == holding {
			return Exclusive
		}
	}
	return Intact
}

// settled says that nothing can break from here on: every property is about two
// attempts that return, and breaks when the second does.
func (m *Model) settled(s *state) bool {
	mayReturn, returned := 0, 0
	for i := range m.Attempts {
		switch p := s.attempts[i].phase; {
		case p.mayReturn():
			mayReturn++
		case p.returned():
			returned++
		}
	}
	return mayReturn == 0 || mayReturn+returned < 2
}
