package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

func TestSchedulesAreRead(t *testing.T) {
	s := time.Second
	for text, want := range map[string][]cue{
		"kill:2@3s,heal@6s":           {{kind: faultKill, count: 2, at: 3 * s}, {kind: faultHeal, at: 6 * s}},
		"heal:n4@6s, kill:n4@3s":      {{kind: faultKill, nodes: []int{3}, at: 3 * s}, {kind: faultHeal, nodes: []int{3}, at: 6 * s}},
		"stop:n5+n1@2.5s":             {{kind: faultStop, nodes: []int{4, 0}, at: 2500 * time.Millisecond}},
		"cut:minority@0s":             {{kind: faultCut, count: 2}},
		"hole:majority@1m":            {{kind: faultHole, count: 3, at: time.Minute}},
		"mute:all@1s,heal:5@1s":       {{kind: faultMute, count: 5, at: s}, {kind: faultHeal, count: 5, at: s}},
		"lag:2=80ms@3s":               {{kind: faultLag, count: 2, delay: 80 * time.Millisecond, at: 3 * s}},
		"lag:n1+n2=1m@3s":             {{kind: faultLag, nodes: []int{0, 1}, delay: time.Minute, at: 3 * s}},
		"wipe:1@3s,restart:1@3s":      {{kind: faultWipe, count: 1, at: 3 * s}, {kind: faultRestart, count: 1, at: 3 * s}},
		"unplug:1@3s":                 {{kind: faultUnplug, count: 1, at: 3 * s}},
		"kill:1@2s,kill:1@1s,heal@3s": {{kind: faultKill, count: 1, at: s}, {kind: faultKill, count: 1, at: 2 * s}, {kind: faultHeal, at: 3 * s}},
	} {
		got, err := parseFaults(text, 5)
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: %+v, %v", text, got, err)
			continue
		}
		for i := range got {
			g, w := got[i], want[i]
			if g.kind != w.kind || g.count != w.count || g.at != w.at || g.delay != w.delay || !slices.Equal(g.nodes, w.nodes) {
				t.Errorf("%q: %+v, want %+v", text, g, w)
			}
		}
	}
}

func TestBadSchedulesNameTheRightOne(t *testing.T) {
	for text, want := range map[string]string{
		"kil:2@3s":              `"kil:2@3s": unknown fault "kil": kinds are kill, restart, wipe, stop, unplug, cut, hole, mute, lag and heal`,
		"":                      `nothing stands before, between or after some comma: want faults such as kill:2@3s,heal@6s`,
		"kill:2@3s,":            `nothing stands`,
		"kill:2@3s, ,heal@6s":   `nothing stands`,
		"kill:2":                `"kill:2": no time: want kill:2@TIME, such as kill:2@3s`,
		"kill:2@":               `time "": want one with its unit after the @, such as 3s`,
		"kill:2@3":              `time "3": want one with its unit`,
		"kill:2@-3s":            `time "-3s": want one with its unit`,
		"kill:2@3s@4s":          `time "3s@4s": want one`,
		"kill@3s":               `which nodes? want a number of nodes (kill:2), their names (kill:n1+n4), minority, majority or all`,
		"kill:@3s":              `which nodes?`,
		"kill:0@3s":             `0 nodes: want 1 to 5 of them`,
		"kill:6@3s":             `6 nodes: want 1 to 5 of them`,
		"kill:-1@3s":            `-1 nodes: want 1 to 5`,
		"kill:n6@3s":            `there is no n6: nodes are n1 to n5`,
		"kill:n0@3s":            `there is no n0: nodes are n1 to n5`,
		"kill:n1+n1@3s":         `n1 is there twice`,
		"kill:n1+@3s":           `"" is no node`,
		"kill:some@3s":          `"some" is no node: want a number of nodes, n1 to n5 with a + between them, minority, majority or all`,
		"kill:2=3s@3s":          `only lag takes a =: want kill:WHO@TIME`,
		"lag:2@3s":              `how late? want lag:WHO=TIME@TIME with 1ms to 1m0s, such as lag:2=80ms@3s`,
		"lag:2=80@3s":           `how late?`,
		"lag:2=2m@3s":           `how late?`,
		"lag=80ms@3s":           `how late? want lag:WHO=TIME@TIME`,
		"heal@3s":               `"heal@3s": no node has a fault then`,
		"kill:2@3s,heal:3@4s":   `"heal:3@4s": 3 nodes to heal, and only 2 have a fault then`,
		"kill:n1@3s,heal:n2@4s": `"heal:n2@4s": n2 has no fault then`,
		"kill:n1@3s,stop:n1@4s": `"stop:n1@4s": n1 has a fault then already, kill: heal it first`,
		"stop:n1@3s,wipe:n1@4s": `"wipe:n1@4s": n1 has a fault then already, stop: heal it first`,
		"kill:n1@3s,kill:n1@4s": `n1 has a fault then already, kill`,
		"kill:4@3s,stop:2@4s":   `"stop:2@4s": 2 nodes wanted, and only 1 of 5 have no fault then`,
		"wipe:n1@3s,heal@4s":    `no node has a fault then`,
	} {
		cues, err := parseFaults(text, 5)
		if err == nil {
			_, err = plan(cues, 5, 1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want …%s…", text, err, want)
		}
	}
	if _, err := parseFaults("stop:minority@1s", 2); err == nil || !strings.Contains(err.Error(), "of 2 nodes none may be missing") {
		t.Errorf("a minority of two nodes: %v", err)
	}
	if _, err := plan(nil, 5, 1); err != errNoFaults {
		t.Errorf("no faults: %v", err)
	}
}

// Nodes are chosen among those that can have the fault, the same for one seed, and
// every one of them by some seed.
func TestPlanChoosesNodes(t *testing.T) {
	cues, err := parseFaults("kill:2@1s,stop:2@2s,heal:1@3s,restart:n1@9s", 5)
	if err != nil {
		t.Fatal(err)
	}
	cues = cues[:3]
	killed := make(map[int]bool)
	for seed := range uint64(100) {
		acts, err := plan(cues, 5, seed)
		again, _ := plan(cues, 5, seed)
		if err != nil || len(acts) != 3 {
			t.Fatal(acts, err)
		}
		for i := range acts {
			if !slices.Equal(acts[i].nodes, again[i].nodes) {
				t.Errorf("seed %d: %v and then %v", seed, acts[i], again[i])
			}
		}
		kill, stop, heal := acts[0].nodes, acts[1].nodes, acts[2].nodes
		if len(kill) != 2 || len(stop) != 2 || len(heal) != 1 || !slices.IsSorted(kill) {
			t.Errorf("seed %d: %v", seed, acts)
		}
		for _, n := range kill {
			killed[n] = true
			if slices.Contains(stop, n) {
				t.Errorf("seed %d: n%d is killed and then stopped", seed, n+1)
			}
		}
		if !slices.Contains(kill, heal[0]) && !slices.Contains(stop, heal[0]) {
			t.Errorf("seed %d: n%d is healed and had nothing", seed, heal[0]+1)
		}
	}
	if len(killed) != 5 {
		t.Errorf("only %d nodes are ever chosen", len(killed))
	}
}

func TestKilledNodeMayComeBackAnotherWay(t *testing.T) {
	for _, text := range []string{"kill:n1@1s,wipe:n1@2s,stop:n1@3s", "kill:n1@1s,restart:n1@2s,kill:n1@3s"} {
		cues, err := parseFaults(text, 5)
		if err == nil {
			_, err = plan(cues, 5, 1)
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever the number of nodes, a preset is a schedule, unless it wants a minority
// that there is not.
func TestPresetsAreSchedules(t *testing.T) {
	for _, p := range presets {
		for nodes := 1; nodes <= mostNodes; nodes++ {
			text, err := preset(p.name, nodes, 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			cues, err := parseFaults(text, nodes)
			if err == nil {
				_, err = plan(cues, nodes, rand.Uint64())
			}
			none := nodes == quorum.Majority(nodes) && strings.Contains(text, "minority")
			if (err != nil) != none {
				t.Errorf("%s on %d nodes, %q: %v", p.name, nodes, text, err)
			}
		}
	}
	if _, err := preset("minor", 5, 0); err == nil || !strings.Contains(err.Error(), `unknown preset "minor": want minority, majority, pause, rolling, wipe, slow and split`) {
		t.Errorf("error %v", err)
	}
}
