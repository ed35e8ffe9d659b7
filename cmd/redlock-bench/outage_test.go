package main

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// done is an act on nodes that took from one second to another.
func done(kind faultKind, from, to time.Duration, nodes ...int) played {
	return played{act: act{kind: kind, nodes: nodes}, began: from * time.Second, done: to * time.Second, seen: to * time.Second}
}

func secs(from, to time.Duration) stretch { return stretch{from * time.Second, to * time.Second} }

func TestStretchesOfSeveralNodes(t *testing.T) {
	nodes := [][]stretch{
		{secs(1, 5), secs(4, 8)}, // two of one node count once
		{secs(3, 6), secs(6, 7)}, // without a gap between them
		{secs(9, 9), secs(12, 11), secs(20, 30)},
	}
	for k, want := range map[int][]stretch{
		1: {secs(1, 8), secs(20, 30)},
		2: {secs(3, 7)},
		3: nil,
	} {
		if got := atLeast(k, nodes); !slices.Equal(got, want) {
			t.Errorf("%d or more: %v, want %v", k, got, want)
		}
	}
}

func TestOutagesOfActs(t *testing.T) {
	for _, test := range []struct {
		name   string
		acts   []played
		need   time.Duration
		some   []stretch
		many   []stretch
		broken []stretch
		surely []stretch
	}{
		{name: "nothing"},
		{name: "a minority is killed and healed",
			acts: []played{done(faultKill, 2, 3, 0), done(faultHeal, 6, 7, 0)},
			some: []stretch{secs(2, 7)}},
		{name: "its quarantine counts",
			acts: []played{done(faultKill, 2, 3, 0), done(faultHeal, 6, 7, 0)}, need: 4 * time.Second,
			some: []stretch{secs(2, 11)}},
		{name: "a stopped node restarts nothing",
			acts: []played{done(faultStop, 2, 3, 0), done(faultHeal, 6, 7, 0)}, need: 4 * time.Second,
			some: []stretch{secs(2, 7)}},
		{name: "a majority is stopped and healed",
			acts: []played{done(faultStop, 2, 3, 0, 1), done(faultHeal, 6, 7, 0, 1)},
			some: []stretch{secs(2, 7)}, many: []stretch{secs(2, 7)}, broken: []stretch{secs(2, 7)}, surely: []stretch{secs(3, 6)}},
		{name: "of two, one comes back sooner",
			acts: []played{done(faultCut, 2, 3, 0, 1), {act: act{kind: faultHeal, nodes: []int{0, 1}}, began: 6 * time.Second, done: 9 * time.Second,
				back: []time.Duration{9 * time.Second, 7 * time.Second}}},
			some: []stretch{secs(2, 9)}, many: []stretch{secs(2, 7)}, broken: []stretch{secs(2, 7)}, surely: []stretch{secs(3, 6)}},
		{name: "a majority is killed, and what comes back is in quarantine for its maxTTL of 2 s at least",
			acts: []played{done(faultKill, 2, 3, 0, 1), done(faultHeal, 6, 7, 0, 1)}, need: 4 * time.Second,
			some: []stretch{secs(2, 11)}, many: []stretch{secs(2, 11)}, broken: []stretch{secs(2, 7)}, surely: []stretch{secs(3, 8)}},
		{name: "a majority restarts and keeps its data",
			acts: []played{done(faultRestart, 2, 3, 0, 1)},
			some: []stretch{secs(2, 3)}, many: []stretch{secs(2, 3)}, broken: []stretch{secs(2, 3)}},
		{name: "a majority is wiped",
			acts: []played{done(faultWipe, 2, 3, 0, 1)}, need: 4 * time.Second,
			some: []stretch{secs(2, 7)}, many: []stretch{secs(2, 7)}, broken: []stretch{secs(2, 3)}, surely: []stretch{secs(3, 4)}},
		{name: "a late majority may be in time",
			acts: []played{done(faultLag, 2, 3, 0, 1), done(faultHeal, 6, 7, 0, 1)},
			some: []stretch{secs(2, 7)}, many: []stretch{secs(2, 7)}},
		{name: "two minorities come to a majority, and one is not healed",
			acts: []played{done(faultStop, 2, 3, 0), done(faultKill, 4, 5, 1), done(faultHeal, 6, 7, 0)},
			some: []stretch{secs(2, 20)}, many: []stretch{secs(4, 7)}, broken: []stretch{secs(4, 7)}, surely: []stretch{secs(5, 6)}},
		{name: "a killed node comes back empty",
			acts: []played{done(faultKill, 2, 3, 0), done(faultWipe, 6, 7, 0)}, need: 4 * time.Second,
			some: []stretch{secs(2, 11)}},
	} {
		o := findOutages(test.acts, 3, test.need, 2*time.Second, 20*time.Second)
		for _, c := range []struct {
			name      string
			got, want []stretch
		}{{"some", o.some, test.some}, {"many", o.many, test.many}, {"broken", o.broken, test.broken}, {"surely", o.surely, test.surely}} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("%s: %s %v, want %v", test.name, c.name, c.got, c.want)
			}
		}
	}
}

func TestWaitBeyondTheHolder(t *testing.T) {
	s := time.Second
	holds := []history.Hold{
		{Key: "b", Called: 1 * s, Acquired: 4 * s, Released: 5 * s, Until: 9 * s},  // nobody had it: 3 s
		{Key: "a", Called: 1 * s, Acquired: 2 * s, Released: 7 * s, Until: 20 * s}, // 1 s
		{Key: "a", Called: 3 * s, Acquired: 9 * s, Lost: 12 * s, Until: 20 * s},    // let go at 7 s: 2 s
		{Key: "a", Called: 3 * s, Acquired: 16 * s, Until: 17 * s},                 // lost at 12 s: 4 s
		{Key: "a", Called: 18 * s, Acquired: 18*s + 1, Released: 19 * s},           // long let go: 1 ns
		{Key: "c", Called: 1 * s, Acquired: 2 * s, Released: 9 * s, Until: 99 * s}, // 1 s
		{Key: "c", Called: 3 * s, Acquired: 4 * s, Released: 5 * s, Until: 99 * s}, // before it was let go: none
	}
	slices.Reverse(holds)
	if got, want := waits(holds), []time.Duration{1 * s, 2 * s, 4 * s, 1, 3 * s, 1 * s, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestLongestTimeWithoutAGrant(t *testing.T) {
	at := func(seconds ...time.Duration) (holds []history.Hold) {
		for _, s := range seconds {
			holds = append(holds, history.Hold{Acquired: s * time.Second})
		}
		return holds
	}
	for _, test := range []struct {
		holds []history.Hold
		want  stretch
	}{
		{nil, secs(0, 10)},
		{at(5, 4, 1), secs(5, 10)},
		{at(9, 4, 2), secs(4, 9)},
		{at(6, 8), secs(0, 6)},
		{at(1, 4, 7, 9, 12), secs(1, 4)}, // what comes after the end is left aside
	} {
		if got := longestGap(test.holds, 10*time.Second); got != test.want {
			t.Errorf("%v: %v, want %v", test.holds, got, test.want)
		}
	}
}

func TestGrantsWithoutAQuorumAreFound(t *testing.T) {
	s := time.Second
	surely := []stretch{secs(3, 6), secs(8, 9)}
	for _, test := range []struct {
		hold history.Hold
		bad  bool
	}{
		{history.Hold{Called: 3 * s, Acquired: 6 * s}, true},
		{history.Hold{Called: 4 * s, Acquired: 4*s + 1}, true},
		{history.Hold{Called: 3*s - 1, Acquired: 4 * s}, false}, // asked for while they were there
		{history.Hold{Called: 4 * s, Acquired: 6*s + 1}, false}, // granted when they were back
		{history.Hold{Called: 4 * s, Acquired: 8*s + 1}, false},
		{history.Hold{Called: 6*s + 1, Acquired: 7 * s}, false},
	} {
		if got := unfounded([]history.Hold{test.hold}, surely); (len(got) == 1) != test.bad {
			t.Errorf("%v called at %v: %v", test.hold, test.hold.Called, got)
		}
	}
}
