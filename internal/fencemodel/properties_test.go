package fencemodel

import "testing"

func TestPropertiesBreak(t *testing.T) {
	for _, test := range []struct {
		name   string
		other  attempt // than the one that returns fence 5
		floor  Counter
		holds  Property // what is broken if timing holds
		broken Property // and if it does not
	}{
		{"nobody else", attempt{}, 0, Intact, Intact},
		{"the same fence is held", attempt{phase: holding, fence: 5}, 0, Unique, Unique},
		{"the same fence was held", attempt{phase: ended, fence: 5}, 5, Unique, Unique},
		{"the same fence was chosen", attempt{phase: stamping, fence: 5}, 0, Intact, Intact},
		{"the same fence was chosen in vain", attempt{phase: failed, fence: 5}, 0, Intact, Intact},
		{"a larger one was returned before it began", attempt{phase: ended, fence: 6}, 6, Ordered, Ordered},
		{"a larger one was returned since", attempt{phase: ended, fence: 6}, 0, Successive, Intact},
		{"a smaller one was returned since", attempt{phase: ended, fence: 4}, 0, Intact, Intact},
		{"a larger one is held", attempt{phase: holding, fence: 6}, 0, Exclusive, Intact},
		{"a smaller one is held", attempt{phase: holding, fence: 4}, 4, Exclusive, Intact},
	} {
		s := state{attempts: [maxAttempts]attempt{test.other, {phase: stamping, fence: 5, floor: test.floor}}}
		for timing, want := range map[bool]Property{timingHolds: test.holds, timingBroken: test.broken} {
			m := Model{Nodes: 3, Attempts: 2, TimingHolds: timing}
			if got := m.breaks(&s, 1, 5); got != want {
				t.Errorf("%s, timing holds %v: %v, want %v", test.name, timing, got, want)
			}
		}
	}
}

func TestSettledMeansNoTwoCanReturn(t *testing.T) {
	for _, test := range []struct {
		phases  [maxAttempts]phase
		settled bool
	}{
		{[...]phase{idle, idle, idle}, false},
		{[...]phase{asking, failed, stamping}, false},
		{[...]phase{asking, failed, overdue}, true},
		{[...]phase{ended, failed, idle}, false},
		{[...]phase{holding, stamping, failed}, false},
		{[...]phase{holding, ended, failed}, true},
		{[...]phase{ended, overdue, failed}, true},
	} {
		var s state
		for a, p := range test.phases {
			s.attempts[a].phase = p
		}
		m := Model{Nodes: 3, Attempts: 3}
		if got := m.settled(&s); got != test.settled {
			t.Errorf("phases %v: settled %v", test.phases, got)
		}
	}
}
