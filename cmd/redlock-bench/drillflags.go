package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// drillSettings are what a drill was asked for.
type drillSettings struct {
	nodes       nodeSet
	schedule    string // of faults, a preset's written out
	plan        []act
	workers     int
	lockers     int
	length      time.Duration // of the load
	ttl         time.Duration // also the largest of any client
	nodeTimeout time.Duration // 0: the lock's own
	keys        int           // that half of the workers fight for
	hold        time.Duration
	seed        uint64
	fenced      bool
	durable     bool
	json        string // a file name, "-" for stdout, "" for none
}

// parseDrill reads the arguments of the drill command, as parseRun does.
func parseDrill(args []string) (drillSettings, error) {
	s := drillSettings{}
	fs := flag.NewFlagSet("drill", flag.ContinueOnError)
	nodes := fs.String("nodes", "spawn:5", "") // see parseRun
	faults := fs.String("fault", "", "")
	named := fs.String("preset", "minority", "")
	whole(fs, &s.workers, "c", 16, 1024)
	whole(fs, &s.lockers, "lockers", 3, 64)
	span(fs, &s.length, "d", 10*time.Second, 100*time.Millisecond, time.Hour)
	span(fs, &s.ttl, "ttl", 2*time.Second, 100*time.Millisecond, 10*time.Minute)
	span(fs, &s.nodeTimeout, "node-timeout", 50*time.Millisecond, time.Millisecond, time.Minute)
	s.nodeTimeout = 0
	whole(fs, &s.keys, "keys", 4, 100_000)
	span(fs, &s.hold, "hold", 5*time.Millisecond, 0, time.Minute)
	number(fs, &s.seed, "seed", 1)
	fs.BoolVar(&s.fenced, "fenced", false, "")
	fs.BoolVar(&s.durable, "durable", false, "")
	fs.StringVar(&s.json, "json", "", "")
	given, err := parse(fs, args)
	if err != nil {
		return s, err
	}
	if given["fault"] && given["preset"] {
		return s, errors.New("flags -fault and -preset: give one of them, a schedule or the name of one")
	}
	if s.hold > s.ttl/2 {
		return s, fmt.Errorf("invalid value %v for flag -hold: want at most half of -ttl %v, %v", s.hold, s.ttl, s.ttl/2)
	}
	if s.nodeTimeout > s.ttl/4 {
		return s, fmt.Errorf("invalid value %v for flag -node-timeout: want at most a quarter of -ttl %v, %v", s.nodeTimeout, s.ttl, s.ttl/4)
	}
	if s.nodes, err = parseDrillNodes(*nodes); err != nil {
		return s, fmt.Errorf("flag -nodes: %w", err)
	}
	from := "-fault"
	if s.schedule = *faults; !given["fault"] {
		from = "-preset"
		if s.schedule, err = preset(*named, s.nodes.count, s.quarantine()); err != nil {
			return s, fmt.Errorf("flag -preset: %w", err)
		}
	}
	if err := s.arrange(given["d"]); err != nil {
		return s, fmt.Errorf("flag %s: %w", from, err)
	}
	return s, nil
}

// arrange makes the plan, and without -d the length that goes with it.
func (s *drillSettings) arrange(lengthGiven bool) error {
	cues, err := parseFaults(s.schedule, s.nodes.count)
	if err != nil {
		return err
	}
	for _, cue := range cues {
		switch can := faultsOf(s.nodes.kind); {
		case !slices.Contains(can, cue.kind):
			return fmt.Errorf("%q: nodes of -nodes %s cannot have that: theirs are %s", cue.text, s.nodes.kind, listed(can))
		case cue.kind == faultWipe && s.durable:
			return fmt.Errorf("%q: a wiped node forgets, and -durable says that none does: leave one of them out", cue.text)
		case lengthGiven && cue.at >= s.length:
			return fmt.Errorf("%q: at %v the drill is over: want less than -d %v, or a longer -d", cue.text, cue.at, s.length)
		}
	}
	if !lengthGiven {
		// Long enough to see what comes of the last.
		s.length = cues[len(cues)-1].at + s.ttl + 3*time.Second
		if slices.ContainsFunc(cues, func(c cue) bool { return c.kind.restarts() }) {
			s.length += max(0, s.quarantine()-s.ttl)
		}
	}
	s.plan, err = plan(cues, s.nodes.count, s.seed)
	return err
}

// parseDrillNodes reads the value of -nodes for a drill, which needs nodes that it
// may harm.
func parseDrillNodes(text string) (nodeSet, error) {
	kind, project, named := strings.Cut(text, ":")
	if kind == kindCompose && named == (project != "") {
		return nodeSet{kind: kindCompose, count: composeNodes, project: project}, nil
	}
	if set, err := parseNodes(text); err == nil && set.kind == kindSpawn {
		return set, nil
	}
	return nodeSet{}, fmt.Errorf("want spawn:N with N from 1 to %d, compose or compose:PROJECT: a drill harms its nodes, so it takes none but these", mostNodes)
}

// faultsOf are the kinds of faults that nodes of a kind can have. The data of a
// container are in a volume, which cannot be emptied from here.
func faultsOf(kind string) []faultKind {
	cannot := faultUnplug
	if kind == kindCompose {
		cannot = faultWipe
	}
	return slices.DeleteFunc(slices.Clone(faultKinds), func(k faultKind) bool { return k == cannot })
}

// drift is the allowance of the drill's lockers.
func (s drillSettings) drift() clock.Drift { return clock.Drift{Slack: leastSlack} }

// quarantine is how long a node that has restarted does not vote, by the lock's own
// rule: until every lock that it may have forgotten has ended. It counts uptime in
// whole seconds, and with fences it is not less than 5 s.
func (s drillSettings) quarantine() time.Duration {
	if s.durable {
		return 0
	}
	need := s.ttl + s.drift().Over(s.ttl)
	need = (need + time.Second - 1).Truncate(time.Second) + time.Second
	if s.fenced {
		need = max(need, 5*time.Second)
	}
	return need
}
