package main

import (
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFlagsAreRead(t *testing.T) {
	defaults := settings{
		nodes: nodeSet{kind: kindEmbedded, count: 5}, workers: 64, length: 5 * time.Second,
		ttl: 10 * time.Second, keys: 4, hold: time.Millisecond, seed: 1,
	}
	for _, test := range []struct {
		args string
		want func(*settings)
	}{
		{"", func(*settings) {}},
		{"-c 7", func(s *settings) { s.workers = 7 }},
		{"--c=7", func(s *settings) { s.workers = 7 }},
		{"-d 200ms", func(s *settings) { s.length = 200 * time.Millisecond }},
		{"-n 100", func(s *settings) { s.cycles = 100 }},
		{"-ttl 500ms", func(s *settings) { s.ttl = 500 * time.Millisecond }},
		{"-keys 1", func(s *settings) { s.keys = 1 }},
		{"-fenced", func(s *settings) { s.fenced = true }},
		{"-durable", func(s *settings) { s.durable = true }},
		{"-hold 0", func(s *settings) { s.hold = 0 }},
		{"-hold 5s", func(s *settings) { s.hold = 5 * time.Second }},
		{"-seed 0", func(s *settings) { s.seed = 0 }},
		{"-json -", func(s *settings) { s.json = "-" }},
		{"-history x", func(s *settings) { s.history = "x" }},
		{"-nodes spawn:3", func(s *settings) { s.nodes = nodeSet{kind: kindSpawn, count: 3} }},
		{"-c 1 -keys 2 -seed 3", func(s *settings) { s.workers, s.keys, s.seed = 1, 2, 3 }},
	} {
		want := defaults
		test.want(&want)
		got, err := parseRun(strings.Fields(test.args))
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", test.args, got, want)
		}
	}
}

func TestBadFlagsNameTheRightValue(t *testing.T) {
	for args, want := range map[string]string{
		"-c 0":                 `"0" for flag -c: want a whole number from 1 to 4096`,
		"-c many":              `"many" for flag -c: want a whole number from 1 to 4096`,
		"-c 5000":              `"5000" for flag -c: want a whole number from 1 to 4096`,
		"-d 5":                 `"5" for flag -d: want a time with its unit from 1ms to 24h0m0s, such as 5s`,
		"-d -1s":               `"-1s" for flag -d: want a time`,
		"-n 0":                 `"0" for flag -n: want a whole number from 1 to`,
		"-d 1s -n 5":           `flags -d and -n: give one of them`,
		"-ttl 1ms":             `"1ms" for flag -ttl: want a time with its unit from 20ms to 1h0m0s`,
		"-keys 0":              `"0" for flag -keys: want a whole number from 1 to`,
		"-hold -1ms":           `"-1ms" for flag -hold: want a time with its unit from 0s`,
		"-hold 6s":             `6s for flag -hold: want at most half of -ttl 10s, 5s`,
		"-ttl 1s -hold 501ms":  `501ms for flag -hold: want at most half of -ttl 1s, 500ms`,
		"-seed -1":             `"-1" for flag -seed: want a whole number from 0`,
		"-json":                `flag needs an argument: -json`,
		"-frobnicate":          `flag provided but not defined: -frobnicate`,
		"-nodes embedded:0":    `flag -nodes: "embedded:0": want embedded:N with N from 1 to 15`,
		"-nodes embedded:":     `flag -nodes: "embedded:": want embedded:N with N from 1 to 15`,
		"-nodes spawn:16":      `flag -nodes: "spawn:16": want spawn:N with N from 1 to 15`,
		"-nodes spawn:x":       `flag -nodes: "spawn:x": want spawn:N with N from 1 to 15`,
		"-nodes localhost":     `flag -nodes: want embedded:N, spawn:N, or URLs`,
		"-nodes http://h":      `flag -nodes: want embedded:N, spawn:N, or URLs`,
		"-nodes redis://h/x":   `flag -nodes: URL 1 of 1 cannot be read: want redis://user:password@host:port/db`,
		"-nodes redis://a,h:1": `flag -nodes: URL 1 of 1 cannot be read`,
		"-c 3 run":             `"run" stands after the flags: the command comes first, redlock-bench run [flags]`,
		"-c 3 more":            `an argument after the flags: every flag starts with -`,
	} {
		_, err := parseRun(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want …%s…", args, err, want)
		}
	}
}

func TestHelpIsNotAnError(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"-help"}, {"--help"}, {"-c", "3", "-h"}} {
		if _, err := parseRun(args); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestDoctorsFlagsAreRead(t *testing.T) {
	defaults := doctorSettings{nodes: nodeSet{kind: kindEmbedded, count: 3}, maxTTL: 30 * time.Second}
	for _, test := range []struct {
		args string
		want func(*doctorSettings)
	}{
		{"", func(*doctorSettings) {}},
		{"-durable", func(s *doctorSettings) { s.durable = true }},
		{"-fenced", func(s *doctorSettings) { s.fenced = true }},
		{"-prefix lock:", func(s *doctorSettings) { s.prefix = "lock:" }},
		{"-max-ttl 1m", func(s *doctorSettings) { s.maxTTL = time.Minute }},
		{"-node-timeout 7.5s", func(s *doctorSettings) { s.nodeTimeout = 7500 * time.Millisecond }},
		{"-json x", func(s *doctorSettings) { s.json = "x" }},
		{"-nodes redis://h", func(s *doctorSettings) { s.nodes = nodeSet{kind: kindRemote, count: 1, urls: []string{"redis://h"}} }},
	} {
		want := defaults
		test.want(&want)
		got, err := parseDoctor(append([]string{"-nodes", "embedded:3"}, strings.Fields(test.args)...))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", test.args, got, err, want)
		}
	}
}

func TestBadFlagsOfTheDoctorNameTheRightValue(t *testing.T) {
	for args, want := range map[string]string{
		"":                      `flag -nodes: want embedded:N, spawn:N, or URLs`,
		"-max-ttl 30":           `"30" for flag -max-ttl: want a time with its unit from 20ms to 24h0m0s, such as 30s`,
		"-node-timeout 0s":      `"0s" for flag -node-timeout: want a time with its unit from 1ms to 6h0m0s, such as 50ms`,
		"-node-timeout 8s":      `8s for flag -node-timeout: want at most a quarter of -max-ttl 30s, 7.5s`,
		"-durable=perhaps":      `"perhaps" for -durable`,
		"-c 3":                  `flag provided but not defined: -c`,
		"-json":                 `flag needs an argument: -json`,
		"-durable doctor":       `"doctor" stands after the flags: the command comes first, redlock-bench doctor [flags]`,
		"-nodes redis://h more": `an argument after the flags: every flag starts with -`,
		"-nodes embedded:16":    `flag -nodes: "embedded:16": want embedded:N with N from 1 to 15`,
	} {
		_, err := parseDoctor(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want …%s…", args, err, want)
		}
	}
}

// Every flag is explained, and nothing else is.
func TestUsageKnowsTheFlags(t *testing.T) {
	for usage, flags := range map[string]string{
		runUsage:     "nodes c d n ttl keys hold seed fenced durable json history",
		drillUsage:   "nodes preset fault c lockers d ttl node-timeout keys hold fenced durable seed json",
		compareUsage: "nodes durable modes with c leases d reps quick json html write",
		doctorUsage:  "nodes durable fenced max-ttl node-timeout prefix json",
	} {
		for name := range strings.FieldsSeq(flags) {
			if !strings.Contains(usage, "\n  -"+name+" ") {
				t.Errorf("-%s is not explained", name)
			}
		}
		if got, want := strings.Count(usage, "\n  -"), len(strings.Fields(flags)); got != want {
			t.Errorf("%d flags are explained, want %d", got, want)
		}
	}
}
