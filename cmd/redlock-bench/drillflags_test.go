package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDrillsFlagsAreRead(t *testing.T) {
	const schedule = "kill:n1@2s"
	defaults := drillSettings{
		nodes: nodeSet{kind: kindSpawn, count: 5}, schedule: schedule,
		plan:    []act{{kind: faultKill, nodes: []int{0}, at: 2 * time.Second}},
		workers: 16, lockers: 3, length: 9 * time.Second, ttl: 2 * time.Second, keys: 4, hold: 5 * time.Millisecond, seed: 1,
	}
	for _, test := range []struct {
		args string
		want func(*drillSettings)
	}{
		{"", func(*drillSettings) {}},
		{"-nodes spawn:3", func(s *drillSettings) { s.nodes.count = 3 }},
		{"-nodes compose", func(s *drillSettings) { s.nodes = nodeSet{kind: kindCompose, count: 5} }},
		{"-nodes compose:mine", func(s *drillSettings) { s.nodes = nodeSet{kind: kindCompose, count: 5, project: "mine"} }},
		{"-c 2 -lockers 1 -keys 1", func(s *drillSettings) { s.workers, s.lockers, s.keys = 2, 1, 1 }},
		{"-d 2001ms", func(s *drillSettings) { s.length = 2001 * time.Millisecond }},
		{"-fenced", func(s *drillSettings) { s.fenced, s.length = true, 10*time.Second }},
		{"-durable", func(s *drillSettings) { s.durable, s.length = true, 7*time.Second }},
		{"-ttl 4s -node-timeout 1s", func(s *drillSettings) {
			s.ttl, s.nodeTimeout, s.length = 4*time.Second, time.Second, 11*time.Second
		}},
		{"-hold 0s -seed 0 -json -", func(s *drillSettings) { s.hold, s.seed, s.json = 0, 0, "-" }},
	} {
		want := defaults
		test.want(&want)
		got, err := parseDrill(append([]string{"-fault", schedule}, strings.Fields(test.args)...))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", test.args, got, err, want)
		}
	}
}

func TestDrillWithoutAScheduleHasAPreset(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "kill:minority@2s,heal@5s",
		"-preset majority":                   "kill:majority@2s,heal@5s",
		"-preset rolling -nodes spawn:3":     "restart:n1@2s,restart:n2@7s,restart:n3@12s",
		"-preset rolling -durable":           "restart:n1@2s,restart:n2@3s,restart:n3@4s,restart:n4@5s,restart:n5@6s",
		"-preset wipe -nodes spawn:1 -c 2":   "wipe:n1@2s,wipe:majority@7s",
		"-preset rolling -ttl 9s -c 3 -d 1h": "restart:n1@2s,restart:n2@14s,restart:n3@26s,restart:n4@38s,restart:n5@50s",
	} {
		s, err := parseDrill(strings.Fields(args))
		if err != nil || s.schedule != want {
			t.Errorf("%q: %q, %v, want %q", args, s.schedule, err, want)
		}
	}
}

func TestBadFlagsOfADrillNameTheRightValue(t *testing.T) {
	for args, want := range map[string]string{
		"-fault kil:2@3s":                  `flag -fault: "kil:2@3s": unknown fault "kil"`,
		"-fault kill:4@3s,kill:2@4s":       `flag -fault: "kill:2@4s": 2 nodes wanted, and only 1 of 5 have no fault then`,
		"-fault kill:2@3s -d 3s":           `flag -fault: "kill:2@3s": at 3s the drill is over: want less than -d 3s`,
		"-fault kill:n4@1s -nodes spawn:3": `flag -fault: "kill:n4@1s": there is no n4: nodes are n1 to n3`,
		"-fault wipe:1@1s -durable":        `"wipe:1@1s": a wiped node forgets, and -durable says that none does: leave one of them out`,
		"-fault wipe:1@1s -nodes compose":  `"wipe:1@1s": nodes of -nodes compose cannot have that: theirs are kill, restart, stop, unplug, cut, hole, mute, lag and heal`,
		"-fault unplug:1@1s":               `"unplug:1@1s": nodes of -nodes spawn cannot have that: theirs are kill, restart, wipe, stop, cut, hole, mute, lag and heal`,
		"-fault kill:1@1s -preset wipe":    `flags -fault and -preset: give one of them`,
		"-preset minor":                    `flag -preset: unknown preset "minor": want minority, majority,`,
		"-preset minority -nodes spawn:2":  `flag -preset: "kill:minority@2s": of 2 nodes none may be missing`,
		"-preset majority -d 4s":           `flag -preset: "heal@5s": at 5s the drill is over: want less than -d 4s`,
		"-nodes embedded:3":                `flag -nodes: want spawn:N with N from 1 to 15, compose or compose:PROJECT: a drill harms its nodes`,
		"-nodes redis://h":                 `flag -nodes: want spawn:N`,
		"-nodes compose:":                  `flag -nodes: want spawn:N`,
		"-nodes spawn:16":                  `flag -nodes: want spawn:N with N from 1 to 15`,
		"-c 1025":                          `"1025" for flag -c: want a whole number from 1 to 1024`,
		"-lockers 0":                       `"0" for flag -lockers: want a whole number from 1 to 64`,
		"-ttl 50ms":                        `"50ms" for flag -ttl: want a time with its unit from 100ms to 10m0s, such as 2s`,
		"-ttl 1s -hold 501ms":              `501ms for flag -hold: want at most half of -ttl 1s, 500ms`,
		"-ttl 1s -node-timeout 251ms":      `251ms for flag -node-timeout: want at most a quarter of -ttl 1s, 250ms`,
		"-c 3 drill":                       `"drill" stands after the flags: the command comes first, redlock-bench drill [flags]`,
	} {
		_, err := parseDrill(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want …%s…", args, err, want)
		}
	}
}
