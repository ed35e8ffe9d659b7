package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// drillSample is a report with a bit of everything, and the timeline that goes with
// it, made as a drill makes them.
func drillSample(t *testing.T, text *bytes.Buffer, args ...string) drillReport {
	t.Helper()
	s, err := parseDrill(append([]string{"-nodes", "spawn:3", "-fault", "kill:n1@1s,stop:n2@2s,heal@3s,lag:n1=80ms@5s"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	r := drill{drillSettings: s}.report([]survey{
		{url: "redis://127.0.0.1:7001", server: "redis 7.0.15"},
		{url: "redis://127.0.0.1:7002", server: "redis 7.0.15"},
		{url: "redis://127.0.0.1:7003", err: errors.New("connection refused")},
	})
	r.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.Machine = machine{CPUs: 2, CPU: "Some CPU", GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Kernel: "6.1", Go: "go1.26"}
	r.Software = software{Bench: "v0.1.0", Library: "v0.1.0", GoRedis: "v9.23.0"}
	r.head(text)

	ms := time.Millisecond
	var acts []played
	for i, p := range []played{
		{began: 1000 * ms, done: 1010 * ms, seen: 1020 * ms, proof: "PING is not answered"},
		{began: 2000 * ms, done: 2010 * ms, seen: 2320 * ms, proof: "PING is not answered"},
		{began: 3000 * ms, done: 3100 * ms, seen: 3100 * ms, proof: "PING is answered", back: []time.Duration{3100 * ms, 3005 * ms}},
		{began: 5000 * ms, done: 5001 * ms, seen: 5006 * ms, err: errors.New("n1: it is not late: PING took 5ms\nat all")},
	} {
		p.act = s.plan[i]
		acts = append(acts, p)
	}
	told := tellSample(text, acts)
	l := loaded{end: 10 * time.Second, acts: told.acts, beats: told.beats, steps: 4}
	l.run = history.Run{
		Holds: []history.Hold{
			{Key: "own:0:1", Holder: 0, Fence: 1001, Called: 400 * ms, Acquired: 401 * ms, Until: 2000 * ms, Released: 406 * ms},
			{Key: "own:0:1", Holder: 0, Fence: 1002, Called: 1400 * ms, Acquired: 1480 * ms, Until: 3000 * ms, Released: 1500 * ms},
			{Key: "shared:1", Holder: 1, Fence: 1003, Called: 2400 * ms, Acquired: 2500 * ms, Until: 4000 * ms, Released: 2505 * ms},
			{Key: "shared:1", Holder: 2, Fence: 1004, Called: 8100 * ms, Acquired: 8101 * ms, Until: 9900 * ms, Released: 8106 * ms},
		},
		Appends: []history.Append{{Entry: history.Entry{Key: "own:0:1", Fence: 1001, Element: "0/1"}, Lease: 1, Called: 402 * ms, Returned: 403 * ms, Outcome: history.OK}},
		Log:     []history.Entry{{Key: "own:0:1", Fence: 1001, Element: "0/1"}},
	}
	rec := newRecorder()
	rec.success([steps]time.Duration{ms, 5 * ms, ms, 7 * ms})
	rec.failure(noQuorum, errors.New("acquire: no quorum"))
	l.phases = []reportPhase{summarize(drill{drillSettings: s}.phases()[0], rec, l.end)}
	r.Check = decide(l.run, true, make([]survey, 3), nil)
	r.take(l)
	r.foot(text)
	return r
}

// tellSample tells of acts, a second before the first and one between each two.
func tellSample(text *bytes.Buffer, acts []played) *timeline {
	tick, over, ch := make(chan time.Time), make(chan struct{}), make(chan played)
	second := time.Duration(0)
	t := &timeline{out: text, pulse: newPulse(), tick: tick, over: over, fault: make([]faultKind, 3), now: func() time.Duration {
		second += time.Second
		return second
	}}
	followed := make(chan struct{})
	go func() {
		t.follow(ch)
		close(followed)
	}()
	for i, a := range acts {
		for range 120 * i {
			t.pulse.granted(false, time.Duration(i)*time.Millisecond)
			t.pulse.granted(true, time.Duration(i)*70*time.Millisecond)
		}
		t.pulse.failure(noQuorum)
		if i == 2 {
			t.pulse.failure(lost)
		}
		tick <- time.Time{}
		begun := a
		begun.seen, begun.proof, begun.err = 0, "", nil
		ch <- begun
		ch <- a
	}
	over <- struct{}{}
	close(ch)
	<-followed
	return t
}

func TestDrillAsText(t *testing.T) {
	var b bytes.Buffer
	drillSample(t, &b, "-fenced")
	drillSample(t, &b, "-durable", "-node-timeout", "100ms")
	golden(t, "drill.txt", b.Bytes())
}

func TestDrillAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, drillSample(t, new(bytes.Buffer), "-fenced")); err != nil {
		t.Fatal(err)
	}
	golden(t, "drill.json", b.Bytes())
}

func TestDrillThatEndsTooSoonFails(t *testing.T) {
	for _, test := range []struct {
		steps       int
		interrupted bool
		clean       bool
	}{{2, false, true}, {1, false, false}, {1, true, true}} {
		r := drillReport{Interrupted: test.interrupted, Nodes: make([]reportNode, 3), plan: make([]act, 2), Check: reportCheck{Clean: true}}
		r.take(loaded{steps: test.steps, end: time.Second})
		if r.Check.Clean != test.clean || test.clean != (len(r.Check.Faults) == 0) {
			t.Errorf("%+v: %+v", test, r.Check)
		}
	}
}

func TestWriteThatIsLostIsNotClean(t *testing.T) {
	a := history.Append{Entry: history.Entry{Key: "k", Fence: 1001, Element: "0/1"}, Lease: 1, Called: 1, Returned: 2, Outcome: history.OK}
	there := decide(history.Run{Appends: []history.Append{a}, Log: []history.Entry{a.Entry}}, true, make([]survey, 3), nil)
	if !there.Clean || there.Appended != 1 || there.StoreFaults != 0 {
		t.Errorf("%+v", there)
	}
	lost := decide(history.Run{Appends: []history.Append{a}}, true, make([]survey, 3), nil)
	if lost.Clean || lost.StoreFaults != 1 || len(lost.Faults) != 1 {
		t.Errorf("%+v", lost)
	}
}
