package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// testDrill is a drill whose text can be read. The lock has all the time that a busy
// machine may take.
func testDrill(t *testing.T, args ...string) (drill, *bytes.Buffer) {
	t.Helper()
	s, err := parseDrill(append([]string{"-c", "8", "-keys", "2", "-hold", "1ms", "-lockers", "2"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	return drill{drillSettings: s, text: &text, up: drillNodes, makeLocker: patientLocker}, &text
}

// until ends a drill early, as Ctrl-C does, with the first lease that was asked for
// after a line with some words had come.
func until(t *testing.T, d *drill, text io.Writer, words string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(func() {
		if cancel(); errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%q never came, or no lease after it", words)
		}
	})
	var said atomic.Bool
	d.text = writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte(words)) {
			said.Store(true)
		}
		return text.Write(b)
	})
	dial := d.makeLocker
	d.makeLocker = func(c *cluster, cfg redlock.Config) (locker, error) {
		l, err := dial(c, cfg)
		return &endingLocker{locker: l, said: &said, end: cancel}, err
	}
	return ctx
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

type endingLocker struct {
	locker
	said *atomic.Bool
	end  func()
}

func (e *endingLocker) TryAcquire(ctx context.Context, key string) (lease, error) {
	said := e.said.Load()
	l, err := e.locker.TryAcquire(ctx, key)
	if said && err == nil {
		e.end()
	}
	return l, err
}

func wantCleanDrill(t *testing.T, r drillReport, err error, text string) {
	t.Helper()
	if err != nil {
		t.Fatal(err, text)
	}
	if !r.Check.Clean || r.Check.Asked != len(r.Nodes) || r.Outcome.Grants == 0 || r.Check.Holds != r.Outcome.Grants {
		t.Fatalf("not clean:\n%s", text)
	}
	for _, f := range r.Faults {
		if f.Proof == "" || f.Error != "" {
			t.Errorf("fault %+v", f)
		}
	}
}

func TestGrantsGoOnWhileAMinorityIsDead(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-durable", "-fenced", "-d", "1h", "-fault", "kill:minority@100ms")
	r, err := d.run(until(t, &d, text, ": PING is not answered"))
	wantCleanDrill(t, r, err, text.String())
	if r.Outcome.Minority.Grants == 0 || len(r.Outcome.Recoveries) != 0 {
		t.Errorf("outcome %+v", r.Outcome)
	}
	if len(r.Faults) != 2 || r.Faults[0].Kind != "kill" || len(r.Faults[0].Nodes) != 2 || r.Faults[1].Kind != "heal" {
		t.Errorf("faults %+v", r.Faults)
	}
	if r.Check.Fenced != r.Check.Holds || r.Check.Appended == 0 {
		t.Errorf("check %+v", r.Check)
	}
	if !r.Interrupted || status(r.Check, err, true) != exitInterrupted || !strings.HasSuffix(text.String(), "verdict: clean, interrupted\n") {
		t.Errorf("the text ends otherwise:\n%s", text)
	}
}

func TestGrantsComeBackWithAMajority(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-nodes", "spawn:3", "-durable", "-ttl", "1s", "-d", "1h", "-fault", "kill:majority@100ms,heal@1s")
	r, err := d.run(until(t, &d, text, ": PING is answered"))
	wantCleanDrill(t, r, err, text.String())
	if len(r.Outcome.Recoveries) != 1 || r.Outcome.Recoveries[0].FirstGrantS == nil {
		t.Fatalf("outcome %+v", r.Outcome)
	}
	if failed := r.Phases[0].Failed["no_quorum"]; failed == 0 {
		t.Errorf("nobody has noticed:\n%s", text)
	}
}

// Servers that have just started, or have just lost what they knew, are waited for.
func TestWipedMajorityIsInQuarantine(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-nodes", "spawn:3", "-ttl", "500ms", "-d", "1h", "-fault", "wipe:majority@100ms")
	r, err := d.run(until(t, &d, text, "a key put there before is gone"))
	wantCleanDrill(t, r, err, text.String())
	if len(r.Outcome.Recoveries) != 1 || r.Outcome.Recoveries[0].FirstGrantS == nil {
		t.Fatalf("outcome %+v", r.Outcome)
	}
	if e := r.Phases[0].Errors["no_quorum"]; !strings.Contains(text.String(), "quarantine") || e == "" {
		t.Errorf("nobody was in quarantine: %q\n%s", e, text)
	}
}

// field-reports: 108
func TestFaultsOnTheWayAreSeen(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-durable", "-d", "1h", "-nodes", "spawn:5", "-fault",
		"cut:n1@0s,hole:n2@0s,heal@1ms,mute:n3@2ms,stop:n4@2ms,heal@3ms,lag:n5=300ms@4ms,restart:n1@5ms,heal:n5@6ms")
	r, err := d.run(until(t, &d, text, "heal n5: PING is answered"))
	wantCleanDrill(t, r, err, text.String())
	var kinds []string
	for _, f := range r.Faults {
		kinds = append(kinds, f.Kind)
	}
	if got := strings.Join(kinds, " "); got != "cut hole heal mute stop heal lag restart heal" {
		t.Errorf("played %s", got)
	}
}

// field-reports: 108
func TestTwoHoldersAtOnceFailTheDrill(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-nodes", "spawn:1", "-durable", "-keys", "1", "-hold", "5ms", "-d", "1h", "-fault", "restart:1@50ms")
	d.makeLocker = func(*cluster, redlock.Config) (locker, error) { return &fakeLocker{broken: true}, nil }
	r, err := d.run(until(t, &d, text, "another run_id"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Check.Clean || r.Check.Overlaps == 0 || status(r.Check, nil, false) != exitFailed {
		t.Errorf("check %+v", r.Check)
	}
	if !strings.Contains(text.String(), "FAULT: two holders at once: holder ") || !strings.Contains(text.String(), "verdict: FAILED") {
		t.Errorf("text:\n%s", text)
	}
}

// A lock that does not ask its nodes grants while they are dead.
func TestGrantWithoutAQuorumFailsTheDrill(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-nodes", "spawn:1", "-durable", "-d", "1h", "-fault", "kill:1@50ms")
	all := &fakeLocker{}
	d.makeLocker = func(*cluster, redlock.Config) (locker, error) { return all, nil }
	r, err := d.run(until(t, &d, text, "PING is not answered"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Check.Clean || r.Check.Overlaps != 0 || status(r.Check, nil, true) != exitFailed {
		t.Errorf("check %+v", r.Check)
	}
	if !strings.Contains(text.String(), "FAULT: granted without a quorum: holder ") {
		t.Errorf("text:\n%s", text)
	}
}

// Whoever says of nodes that forget that they are durable has locks granted twice.
func TestLieAboutDurabilityFailsTheDrill(t *testing.T) {
	redisproc.Require(t)
	d, text := testDrill(t, "-nodes", "spawn:3", "-ttl", "25s", "-d", "1h", "-fault", "wipe:majority@50ms")
	d.makeLocker = func(c *cluster, cfg redlock.Config) (locker, error) {
		cfg.DurableNodes = true
		return newQuorumLocker(c, cfg)
	}
	r, err := d.run(until(t, &d, text, "a key put there before is gone"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Check.Clean || status(r.Check, nil, true) != exitFailed || !strings.Contains(text.String(), "FAULT: granted without a quorum: holder ") {
		t.Errorf("check %+v\n%s", r.Check, text)
	}
}

// What the drill takes for the quarantine is what the lock says of it.
func TestQuarantineIsTheLocks(t *testing.T) {
	redisproc.Require(t)
	c, err := nodeSet{kind: kindSpawn, count: 1}.up(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.down() })
	c.durable = false
	for _, args := range []string{"-ttl 2s", "-ttl 2s -fenced", "-ttl 9.95s", "-ttl 9.85s -fenced"} {
		d, _ := testDrill(t, strings.Fields(args)...)
		cfg := c.config(d.ttl, d.ttl, "")
		cfg.Fenced = d.fenced
		l, err := redlock.Dial(c.urls, cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := fmt.Sprintf("has no vote for %v after one", d.quarantine())
		if !slices.ContainsFunc(r.Findings, func(f redlock.Finding) bool { return strings.Contains(f.Text, want) }) {
			t.Errorf("%s: no %q in %+v", args, want, r.Findings)
		}
	}
}

// Ctrl-C in a drill ends it, heals its nodes, and leaves no server behind.
func TestInterruptEndsADrill(t *testing.T) {
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "drill", "-nodes", "spawn:3", "-durable", "-ttl", "4s", "-node-timeout", "1s", "-d", "1h", "-fault", "stop:n2@0s")
	c.Env = append(os.Environ(), mainEnv+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	var text bytes.Buffer
	line := make([]byte, 1<<16)
	for !strings.Contains(text.String(), "PING is not answered") {
		n, err := out.Read(line)
		if text.Write(line[:n]); err != nil {
			t.Fatalf("%v\n%s%s", err, &text, &errs)
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := text.ReadFrom(out); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if got := c.ProcessState.ExitCode(); got != exitInterrupted || !strings.Contains(text.String(), "heal n2: PING is answered") ||
		!strings.HasSuffix(text.String(), "verdict: clean, interrupted\n") {
		t.Errorf("exit status %d\n%s%s", got, &text, &errs)
	}
}
