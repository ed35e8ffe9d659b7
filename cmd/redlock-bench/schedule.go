package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// faultKind is what is done to a node in a drill.
type faultKind string

// Kinds of faults, and heal, which ends them.
const (
	faultKill    faultKind = "kill"    // the process is killed; heal starts it again
	faultRestart faultKind = "restart" // it is killed and started again at once
	faultWipe    faultKind = "wipe"    // the same, and it comes back empty
	faultStop    faultKind = "stop"    // the process hangs
	faultCut     faultKind = "cut"     // connections are reset, new ones too
	faultHole    faultKind = "hole"    // what is sent to it disappears
	faultMute    faultKind = "mute"    // it does what it is told, and its answers disappear
	faultUnplug  faultKind = "unplug"  // a container has no network
	faultLag     faultKind = "lag"     // its answers come late
	faultHeal    faultKind = "heal"
)

// faultKinds are all of them, in the order in which people are told.
var faultKinds = []faultKind{faultKill, faultRestart, faultWipe, faultStop, faultUnplug, faultCut, faultHole, faultMute, faultLag, faultHeal}

// lasts says whether a node has the fault until it is healed.
func (k faultKind) lasts() bool { return k != faultRestart && k != faultWipe && k != faultHeal }

// restarts says whether the server process is another one afterwards.
func (k faultKind) restarts() bool { return k == faultKill || k == faultRestart || k == faultWipe }

// silences says whether a node with the fault cannot answer.
func (k faultKind) silences() bool { return k != faultLag && k != faultHeal }

// onTheWay says whether it is the network that is at fault. The node lives on.
func (k faultKind) onTheWay() bool {
	return k == faultCut || k == faultHole || k == faultMute || k == faultLag
}

// cue is what a schedule wants done at one moment.
type cue struct {
	text  string // as it was written
	kind  faultKind
	nodes []int         // these, from 0
	count int           // or so many; 0 without nodes is all that have a fault
	delay time.Duration // of lag
	at    time.Duration
}

// parseFaults reads a schedule for so many nodes. Steps come back in the order of
// their times, those of one time as they were written.
func parseFaults(text string, nodes int) ([]cue, error) {
	var cues []cue
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			return nil, errors.New("nothing stands before, between or after some comma: want faults such as kill:2@3s,heal@6s")
		}
		s, err := parseCue(part, nodes)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		cues = append(cues, s)
	}
	slices.SortStableFunc(cues, func(a, b cue) int { return int(a.at - b.at) })
	return cues, nil
}

func parseCue(text string, nodes int) (cue, error) {
	s := cue{text: text}
	what, at, timed := strings.Cut(text, "@")
	word, who, _ := strings.Cut(what, ":")
	word, _, _ = strings.Cut(word, "=")
	if s.kind = faultKind(word); !slices.Contains(faultKinds, s.kind) {
		return s, fmt.Errorf("unknown fault %q: kinds are %s", word, listed(faultKinds))
	}
	if !timed {
		return s, fmt.Errorf("no time: want %s@TIME, such as %s@3s", what, what)
	}
	var err error
	if s.at, err = time.ParseDuration(at); err != nil || s.at < 0 {
		return s, fmt.Errorf("time %q: want one with its unit after the @, such as 3s or 2.5s", at)
	}
	if s.kind == faultLag {
		var late string
		who, late, _ = strings.Cut(who, "=")
		if s.delay, err = time.ParseDuration(late); err != nil || s.delay < time.Millisecond || s.delay > mostLag {
			return s, fmt.Errorf("how late? want lag:WHO=TIME@TIME with 1ms to %v, such as lag:2=80ms@%s", mostLag, at)
		}
	} else if strings.Contains(what, "=") {
		return s, fmt.Errorf("only lag takes a =: want %s:WHO@TIME", word)
	}
	s.nodes, s.count, err = parseWho(s.kind, who, nodes)
	return s, err
}

// mostLag is the largest lag. A node that is later than that is as good as hung.
const mostLag = time.Minute

// parseWho reads which nodes a cue is about.
func parseWho(kind faultKind, who string, nodes int) (named []int, count int, err error) {
	switch who {
	case "":
		if kind == faultHeal {
			return nil, 0, nil
		}
		return nil, 0, fmt.Errorf("which nodes? want a number of nodes (%[1]s:2), their names (%[1]s:n1+n4), minority, majority or all", kind)
	case "minority":
		if count = nodes - quorum.Majority(nodes); count == 0 {
			return nil, 0, fmt.Errorf("of %d nodes none may be missing, so there is no minority to harm", nodes)
		}
		return nil, count, nil
	case "majority":
		return nil, quorum.Majority(nodes), nil
	case "all":
		return nil, nodes, nil
	}
	if count, err := strconv.Atoi(who); err == nil {
		if count < 1 || count > nodes {
			return nil, 0, fmt.Errorf("%d nodes: want 1 to %d of them", count, nodes)
		}
		return nil, count, nil
	}
	for name := range strings.SplitSeq(who, "+") {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
		if err != nil || !strings.HasPrefix(name, "n") {
			return nil, 0, fmt.Errorf("%q is no node: want a number of nodes, n1 to n%d with a + between them, minority, majority or all", name, nodes)
		}
		if n < 1 || n > nodes {
			return nil, 0, fmt.Errorf("there is no %s: nodes are n1 to n%d", name, nodes)
		}
		if slices.Contains(named, n-1) {
			return nil, 0, fmt.Errorf("%s is there twice", name)
		}
		named = append(named, n-1)
	}
	return named, 0, nil
}

// presets are schedules with a name. need is how long a node that has restarted
// does not vote, at least a second.
var presets = []struct {
	name, about string
	schedule    func(nodes int, need time.Duration) string
}{
	{"minority", "a minority is killed and comes back", func(int, time.Duration) string {
		return "kill:minority@2s,heal@5s"
	}},
	{"majority", "a majority is killed and comes back", func(int, time.Duration) string {
		return "kill:majority@2s,heal@5s"
	}},
	{"pause", "a minority hangs, then a majority does", func(int, time.Duration) string {
		return "stop:minority@2s,heal@4s,stop:majority@6s,heal@8s"
	}},
	{"rolling", "every node restarts, one after the other, each when the last votes again", func(nodes int, need time.Duration) string {
		return eachInTurn("restart", nodes, need)
	}},
	{"wipe", "every node loses its data and restarts, one after the other, then a majority at once", func(nodes int, need time.Duration) string {
		return eachInTurn("wipe", nodes, need) + fmt.Sprintf(",wipe:majority@%v", 2*time.Second+time.Duration(nodes)*(need+time.Second))
	}},
	{"slow", "a minority answers late, at first in time and then too late to count", func(int, time.Duration) string {
		return "lag:minority=20ms@2s,heal@5s,lag:minority=500ms@6s,heal@9s"
	}},
	{"split", "a minority is cut off, then what it is sent disappears, then the answers of a majority do", func(int, time.Duration) string {
		return "cut:minority@2s,heal@4s,hole:minority@5s,heal@7s,mute:majority@9s,heal@11s"
	}},
}

func eachInTurn(kind string, nodes int, need time.Duration) string {
	var cues []string
	for i := range nodes {
		cues = append(cues, fmt.Sprintf("%s:n%d@%v", kind, i+1, 2*time.Second+time.Duration(i)*(need+time.Second)))
	}
	return strings.Join(cues, ",")
}

// preset is the schedule of that name.
func preset(name string, nodes int, need time.Duration) (string, error) {
	var names []string
	for _, p := range presets {
		if p.name == name {
			return p.schedule(nodes, need), nil
		}
		names = append(names, p.name)
	}
	return "", fmt.Errorf("unknown preset %q: want %s", name, listed(names))
}

// listed are words with commas between them.
func listed[S ~string](words []S) string {
	if len(words) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// errNoFaults is that of a schedule in which nothing goes wrong.
var errNoFaults = errors.New("nothing goes wrong in it: want a fault, such as kill:2@3s")
