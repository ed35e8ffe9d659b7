package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// illness is a diagnosis with a bit of everything.
func illness() diagnosis {
	facts := func(change func(f *redlock.Facts)) *redlock.Facts {
		f := &redlock.Facts{
			Server: "redis", Version: "7.0.15", RedisVersion: "7.0.15", UptimeS: 1_000_000, Role: "master", MaxMemoryPolicy: "noeviction",
			Persistence: redlock.Persistence{AppendOnly: "yes", AppendFsync: "always", NoFsyncOnRewrite: "no", Save: "no", LastSave: "ok"},
			RoundTripMS: 0.21, Clock: &redlock.ClockFacts{AheadMS: 0.3, WithinMS: 0.105},
		}
		change(f)
		return f
	}
	return diagnosis{
		Checked:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Software: software{Bench: "v0.1.0", Library: "v0.1.0", GoRedis: "v9.23.0"},
		Settings: doctorSettings{nodes: nodeSet{kind: kindRemote}, maxTTL: 30 * time.Second, nodeTimeout: 20 * time.Millisecond, prefix: "lock:", fenced: true, durable: true}.reported(),
		Report: redlock.Report{
			Voters: 2, Quorum: 4,
			Nodes: []redlock.NodeReport{
				{Node: "10.0.0.1:6379", Votes: true, Run: "4770c3ef", Durable: "yes", ClockOffset: &redlock.ClockFacts{AheadMS: 0.1, WithinMS: 0.205}, Facts: facts(func(*redlock.Facts) {})},
				{Node: "10.0.0.2:6379", WhyNot: "does not answer: connection refused"},
				{Node: "10.0.0.3:6379", WhyNot: "is quarantined for 9s more: restarted 23s ago, MaxTTL 30s", QuarantinedS: 8.4, Run: "1286f598", Durable: "no",
					ClockOffset: &redlock.ClockFacts{AheadMS: -1200, WithinMS: 0.205}, Facts: facts(func(f *redlock.Facts) { f.UptimeS, f.Server, f.Version = 23, "valkey", "9.1.2" })},
				{Node: "/run/r.sock", Votes: true, Run: "b2e53ec7", Durable: "unknown", ClockOffset: &redlock.ClockFacts{AheadMS: 700, WithinMS: 50}, Facts: facts(func(f *redlock.Facts) {
					f.UptimeS, f.MaxMemory, f.MaxMemoryPolicy, f.RoundTripMS, f.Refused = 3700, 1<<30, "allkeys-lru", 45, []string{"client|kill", "config|get"}
				})},
				{Node: "10.0.0.5:6379", WhyNot: "is one of 6 nodes of a cluster", Run: "c0ffee00", Durable: "no", Facts: facts(func(f *redlock.Facts) {
					f.UptimeS, f.Cluster, f.ClusterNodes, f.Clock = 61, true, 6, nil
				})},
				{Node: "10.0.0.6:6379", WhyNot: "is quarantined for 31s more: restarted 1s ago, MaxTTL 30s", QuarantinedS: 31, Durable: "no", Facts: &redlock.Facts{Version: "\x1b[2Jevil"}},
			},
			Findings: []redlock.Finding{
				{Severity: redlock.Problem, Node: "10.0.0.2:6379", Text: "does not answer: connection refused\nand more: see whether it is up"},
				{Severity: redlock.Problem, Node: "10.0.0.3:6379", Text: "forgets locks"},
				{Severity: redlock.Problem, Node: "10.0.0.5:6379", Text: "forgets locks"},
				{Severity: redlock.Problem, Text: "2 of 6 nodes may vote and 4 are needed"},
				{Severity: redlock.Warning, Node: "/run/r.sock", Text: "forgets keys when its memory is full"},
				{Severity: redlock.Note, Text: "6 nodes bear the loss of no more than 5 do"},
				{Severity: redlock.Note, Node: "10.0.0.1:6379", Text: "is old"},
				{Severity: redlock.Note, Node: "10.0.0.2:6379", Text: "is old"},
				{Severity: redlock.Note, Node: "10.0.0.3:6379", Text: "is old"},
				{Severity: redlock.Note, Node: "/run/r.sock", Text: "is old"},
				{Severity: redlock.Note, Node: "10.0.0.5:6379", Text: "is old"},
				{Severity: redlock.Note, Node: "10.0.0.6:6379", Text: "is old"},
			},
		},
	}
}

// healthy is a diagnosis with no finding but those of at most this severity.
func healthy(worst redlock.Severity) diagnosis {
	d := illness()
	d.Settings.Fenced, d.Settings.Durable = false, false
	d.Nodes, d.Voters, d.Quorum, d.QuorumMayVote, d.Findings = d.Nodes[:1], 1, 1, true, nil
	if worst != "" {
		d.Findings = []redlock.Finding{{Severity: worst, Node: d.Nodes[0].Node, Text: "is a " + string(worst)}}
	}
	return d
}

func TestDiagnosisAsText(t *testing.T) {
	texts := []string{illness().text()}
	for _, worst := range []redlock.Severity{redlock.Problem, redlock.Warning, redlock.Note, ""} {
		texts = append(texts, healthy(worst).text())
	}
	golden(t, "doctor.txt", []byte(strings.Join(texts, "\n")))
}

func TestDiagnosisAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, illness()); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor.json", b.Bytes())
}

func TestVerdictSaysWhenThereIsAQuorumAgain(t *testing.T) {
	for _, test := range []struct {
		quarantined []float64
		voters      int
		want        string
	}{
		{[]float64{9, 0, 0}, 1, "NO QUORUM, 1 of 3 nodes may vote, 2 are needed; after quarantine, in 9s, there are enough"},
		{[]float64{9, 3.2, 6}, 0, "NO QUORUM, 0 of 3 nodes may vote, 2 are needed; after quarantine, in 6s, there are enough"},
		{[]float64{9, 0, 0}, 0, "NO QUORUM, 0 of 3 nodes may vote, 2 are needed"},
	} {
		var d diagnosis
		for _, s := range test.quarantined {
			d.Nodes = append(d.Nodes, redlock.NodeReport{QuarantinedS: s})
		}
		d.Quorum, d.Voters = 2, test.voters
		if got := d.verdict(); got != test.want {
			t.Errorf("%v: %s, want %s", test.quarantined, got, test.want)
		}
	}
}

func TestExitStatusOfTheDoctor(t *testing.T) {
	for _, test := range []struct {
		name        string
		d           diagnosis
		err         error
		interrupted bool
		want        int
	}{
		{"fine", healthy(""), nil, false, 0},
		{"notes", healthy(redlock.Note), nil, false, 0},
		{"warnings", healthy(redlock.Warning), nil, false, 1},
		{"problems", healthy(redlock.Problem), nil, false, 3},
		{"no quorum", illness(), nil, false, 3},
		{"nothing asked", diagnosis{}, errors.New("no server"), false, 3},
		{"fine, but not written", healthy(""), errors.New("disk full"), false, 3},
		{"refused by the library", diagnosis{}, fmt.Errorf("%w: twice the same node", redlock.ErrInvalid), false, 2},
		{"interrupted", diagnosis{}, fmt.Errorf("audit: %w", context.Canceled), true, 130},
		{"interrupted too late", healthy(redlock.Problem), nil, true, 3},
	} {
		if got := health(test.d, test.err, test.interrupted); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestUptimesAreShort(t *testing.T) {
	for s, want := range map[int64]string{
		-3: "-3s", 0: "0s", 59: "59s", 60: "1m0s", 3599: "59m59s", 3600: "1h0m", 86399: "23h59m", 86400: "1d0h", 1_000_000: "11d13h",
	} {
		if got := up(&redlock.Facts{RedisVersion: "7", UptimeS: s}); got != want {
			t.Errorf("%d: %q, want %q", s, got, want)
		}
	}
}

// Real servers that are as they should be are fine, with the passwords that they
// ask for, which appear nowhere.
func TestDoctorOnRealServers(t *testing.T) {
	redisproc.Require(t)
	const password = "hunter2 and: more/@"
	var urls []string
	for range 3 {
		p, err := redisproc.Start(t.Context(), redisproc.Options{Args: []string{"--requirepass", password, "--appendonly", "yes", "--appendfsync", "always"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		urls = append(urls, "redis://default:hunter2%20and%3A%20more%2F%40@"+p.Addr()+"/1")
	}
	file := t.TempDir() + "/out.json"
	// A busy machine may take its time.
	args := []string{"doctor", "-durable", "-fenced", "-node-timeout", "7s", "-prefix", "p:", "-json", file, "-nodes"}
	text, errs, status := outcome(append(args, strings.Join(urls, ","))...)
	object, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d diagnosis
	if err := json.Unmarshal(object, &d); err != nil || status != exitClean || d.Voters != 3 || len(d.Findings) != 0 || !strings.HasSuffix(text, "verdict: fine, 3 of 3 nodes may vote, 2 are needed\n") {
		t.Errorf("exit status %d, %v\n%s%s%s", status, err, text, errs, object)
	}
	wrong := strings.ReplaceAll(strings.Join(urls, ","), "hunter2", "hunter3")
	if text, errs, status := outcome("doctor", "-nodes", wrong); status != exitProblems || strings.Contains(text+errs, "hunter") || !strings.Contains(text, "WRONGPASS") {
		t.Errorf("exit status %d\n%s%s", status, text, errs)
	}
	if strings.Contains(text+errs+string(object), "hunter") {
		t.Errorf("a password is in\n%s%s%s", text, errs, object)
	}
}
