package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

func TestFlagsOfAComparisonAreRead(t *testing.T) {
	defaults := compareSettings{
		nodes: nodeSet{kind: kindSpawn, count: 5}, modes: compareModes, workers: []int{1, 8, 64, 256}, leases: []int{10_000, 30_000, 100_000},
		reps: 3, length: 3 * time.Second,
	}
	for _, test := range []struct {
		args string
		want func(*compareSettings)
	}{
		{"", func(*compareSettings) {}},
		{"-modes fault,limit", func(s *compareSettings) { s.modes = []string{"limit", "fault"} }},
		{"-c 8,1,8", func(s *compareSettings) { s.workers = []int{1, 8} }},
		{"-leases 5", func(s *compareSettings) { s.leases = []int{5} }},
		{"-reps 1 -d 200ms", func(s *compareSettings) { s.reps, s.length = 1, 200*time.Millisecond }},
		{"-html a -json b -write c", func(s *compareSettings) { s.html, s.json, s.write = "a", "b", "c" }},
		{"-quick", func(s *compareSettings) {
			s.quick, s.reps, s.length, s.workers, s.leases = true, 1, 500*time.Millisecond, []int{1, 64}, []int{1000}
		}},
		{"-c 2 -quick -reps 5 -leases 7 -d 1s", func(s *compareSettings) {
			s.quick, s.reps, s.length, s.workers, s.leases = true, 5, time.Second, []int{2}, []int{7}
		}},
		{"-nodes embedded:3", func(s *compareSettings) {
			s.nodes = nodeSet{kind: kindEmbedded, count: 3}
			s.modes = []string{"limit", "uncontended", "contended", "alive"}
		}},
		{"-nodes redis://h -durable", func(s *compareSettings) {
			s.nodes, s.durable = nodeSet{kind: kindRemote, count: 1, urls: []string{"redis://h"}}, true
			s.modes = []string{"limit", "uncontended", "contended", "alive"}
		}},
	} {
		want := defaults
		test.want(&want)
		got, err := parseCompare(strings.Fields(test.args))
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		if len(got.rivals) != len(rival.All) {
			t.Errorf("%q: %d implementations", test.args, len(got.rivals))
		}
		got.rivals = nil // they hold funcs
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", test.args, got, want)
		}
	}
	if s, err := parseCompare([]string{"-with", "redislock,quorumlock"}); err != nil || !reflect.DeepEqual(s.names(), []string{"quorumlock", "redislock"}) {
		t.Errorf("%v, %v", s.names(), err)
	}
	if !reflect.DeepEqual(compareModes[0], "limit") {
		t.Errorf("%v", compareModes)
	}
}

func TestBadFlagsOfAComparisonNameTheRightValue(t *testing.T) {
	for args, want := range map[string]string{
		"-modes speed":                          `"speed" for flag -modes: "speed" is none of them: want some of limit, uncontended, rtt, contended, fault, alive`,
		"-modes limit,":                         `"limit," for flag -modes: "" is none of them`,
		"-with redlock":                         `"redlock" for flag -with: "redlock" is none of them: want some of quorumlock, quorumlock-fenced, redsync, redislock, rueidislock`,
		"-c 0":                                  `"0" for flag -c: want whole numbers from 1 to 4096 with a comma between them`,
		"-c 1,x":                                `"1,x" for flag -c: want whole numbers`,
		"-leases 2000000":                       `"2000000" for flag -leases: want whole numbers from 1 to 1000000`,
		"-reps 0":                               `"0" for flag -reps: want a whole number from 1 to 100`,
		"-d 5":                                  `"5" for flag -d: want a time with its unit from 100ms to 10m0s, such as 3s`,
		"-nodes spawn:0":                        `flag -nodes: "spawn:0": want spawn:N with N from 1 to 15`,
		"-nodes redis://:hunter2@h/x":           `flag -nodes: URL 1 of 1 cannot be read`,
		"-nodes embedded:3 -modes fault":        `flag -modes: fault needs servers that this program starts and may harm: give -nodes spawn:5`,
		"-nodes redis://h -modes rtt":           `flag -modes: rtt needs servers`,
		"-nodes embedded:3 -write perf.md":      `flag -write: figures of embedded servers have no place in documentation`,
		"-html -":                               `flag -html: want the name of a file: only -json writes to standard output`,
		"-write -":                              `flag -write: want the name of a file`,
		"-html a -json a":                       `flag -html: -json writes a too: want a file for each`,
		"-write a -json a":                      `flag -write: -json writes a too: want a file for each`,
		"-write a -html a":                      `flag -html: -write writes a too: want a file for each`,
		"-quick=perhaps":                        `"perhaps" for -quick`,
		"-quick compare":                        `"compare" stands after the flags`,
		"-quick redis://:hunter2@127.0.0.1:700": `an argument after the flags: every flag starts with -`,
	} {
		_, err := parseCompare(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want …%s…", args, err, want)
		}
	}
}
