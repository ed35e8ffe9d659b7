package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

var update = flag.Bool("update", false, "write what the tests got into testdata")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is otherwise; got:\n%s", file, got)
	}
}

// sample is a report with a bit of everything, made as a run makes it.
func sample() report {
	s := session{settings: settings{
		nodes: nodeSet{kind: kindEmbedded}, workers: 2, length: 5 * time.Second, ttl: 10 * time.Second,
		keys: 4, hold: time.Millisecond, seed: 7, fenced: true,
	}}
	r := s.report([]survey{
		{url: "redis://127.0.0.1:7001", server: "redis 7.0.15"},
		{url: "redis://user:xxxxx@10.0.0.2:7002/3", server: "valkey 9.1.2"},
		{url: "redis://127.0.0.1:7003", err: errors.New("connection refused")},
	})
	r.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.Machine = machine{CPUs: 2, CPU: "Some CPU", GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Kernel: "6.1", Go: "go1.26"}
	r.Software = software{Bench: "v0.1.0", Library: "v0.1.0", GoRedis: "v9.23.0"}

	p := s.phases()
	quick := newRecorder()
	for i := range 1000 {
		d := time.Duration(i+1) * time.Microsecond
		quick.success([steps]time.Duration{d, 0, d / 2, 2 * d})
	}
	r.Phases = append(r.Phases, summarize(p[0], quick, 2500*time.Millisecond))
	slow := newRecorder()
	slow.success([steps]time.Duration{3 * time.Millisecond, time.Millisecond, 40 * time.Millisecond, 2 * time.Second})
	slow.failure(noQuorum, errors.New("acquire: no quorum"))
	slow.failure(noQuorum, errors.New("another"))
	slow.failure(timedOut, errors.New("waited in vain"))
	slow.cutShort = 2
	r.Phases = append(r.Phases, summarize(p[1], slow, 5*time.Second))

	ms := time.Millisecond
	r.Check = decide(
		history.Run{Holds: []history.Hold{
			{Key: "shared:1", Holder: 0, Fence: 1001, Called: 4 * ms, Acquired: 5 * ms, Until: 10000 * ms, Released: 9 * ms},
			{Key: "shared:1", Holder: 1, Fence: 1001, Called: 7 * ms, Acquired: 8 * ms, Until: 10000 * ms, Released: 11 * ms},
			{Key: "shared:2", Holder: 1, Called: 12 * ms, Acquired: 13 * ms, Until: 10000 * ms, Released: 14 * ms},
		}},
		true,
		[]survey{
			{url: "redis://127.0.0.1:7001", keys: []string{"redlock-bench:{1}:shared:2"}},
			{url: "redis://user:xxxxx@10.0.0.2:7002/3"},
			{url: "redis://127.0.0.1:7003", err: errors.New("connection refused")},
		},
		errors.New("context deadline exceeded\n127.0.0.1:7003: 1 keys may be left"))
	return r
}

func TestReportAsText(t *testing.T) {
	var b bytes.Buffer
	write := func(r report) {
		r.head(&b)
		for _, p := range r.Phases {
			r.body(&b, p)
		}
		r.Check.foot(&b, len(r.Nodes), r.Interrupted)
	}
	write(sample())

	good := sample()
	good.Settings.Nodes, good.Interrupted = kindRemote, true
	good.Nodes, good.Phases = good.Nodes[:2], good.Phases[:1]
	good.Check = decide(history.Run{Holds: []history.Hold{{Key: "own:0:1", Fence: 1000, Acquired: 1, Until: 9}}}, true, make([]survey, 2), nil)
	write(good)
	golden(t, "report.txt", b.Bytes())
}

// field-reports: 108
func TestReportAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b.Bytes())
}

func TestTimesHaveThreeDigits(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0.00 µs", 0.5: "0.50 µs", 9.994: "9.99 µs", 12.34: "12.3 µs", 866.4: "866 µs",
		1000: "1.00 ms", 45_600: "45.6 ms", 999_000: "999 ms", 1_000_000: "1.00 s", 61_500_000: "61.5 s",
	} {
		if got := us(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}
