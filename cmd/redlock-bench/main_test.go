package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/quorumlock/redlock"
)

// mainEnv makes this test program the command itself.
const mainEnv = "REDLOCK_BENCH_TEST_MAIN"

func TestMain(m *testing.M) {
	// A child that measures is this program too, and must not run the tests again.
	if os.Getenv(mainEnv) != "" || len(os.Args) > 1 && os.Args[1] == "measure" {
		main()
	}
	logging.Disable()
	os.Exit(m.Run())
}

// outcome does what the command does.
func outcome(args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = command(args, &out, &errs, nil)
	return out.String(), errs.String(), status
}

func TestCommands(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		stdout string // how it begins
		stderr string // what it holds
	}{
		{"version", 0, "redlock-bench ", ""},
		{"version -h", 0, "Usage: redlock-bench version", ""},
		{"help", 0, "Usage: redlock-bench [command]", ""},
		{"help -h", 0, "Usage: redlock-bench [command]", ""},
		{"help run", 0, "Usage: redlock-bench [run]", ""},
		{"help version", 0, "Usage: redlock-bench version", ""},
		{"help doctor", 0, "Usage: redlock-bench doctor", ""},
		{"help compare", 0, "Usage: redlock-bench compare", ""},
		{"compare -h", 0, "Usage: redlock-bench compare", ""},
		{"compare -reps 0", 2, "", "\"redlock-bench help compare\" says more"},
		{"compare -nodes redis://u:hunter2@127.0.0.1:1", 1, "", "0 of 1 nodes answer, and 1 are needed\nredis://u:xxxxx@127.0.0.1:1: "},
		{"compare -nodes redis://127.0.0.1:1 -html /no/such/dir/x", 1, "", "flag -html: open /no/such/dir/x: "},
		{"compare -nodes redis://127.0.0.1:1 -json /no/such/dir/x", 1, "", "flag -json: open /no/such/dir/x: "},
		{"compare -nodes redis://127.0.0.1:1 -write /no/such/dir/x", 1, "", "flag -write: open /no/such/dir/x: "},
		{"compare -nodes redis://127.0.0.1:1 -write main_test.go", 1, "", "flag -write: main_test.go: want a line " + markerFrom},
		{"help drill", 0, "Usage: redlock-bench drill", ""},
		{"drill -h", 0, "Usage: redlock-bench drill", ""},
		{"doctor -h", 0, "Usage: redlock-bench doctor", ""},
		{"run -h", 0, "Usage: redlock-bench [run]", ""},
		{"-h", 0, "Usage: redlock-bench [run]", ""},
		{"--help", 0, "Usage: redlock-bench [run]", ""},
		{"-c 3 -help", 0, "Usage: redlock-bench [run]", ""},
		{"walk", 2, "", "unknown command: want run, compare, drill, doctor, version or help first"},
		{"redis://:hunter2@h", 2, "", "servers go to -nodes"},
		{"redis://:hunter2@h -c 3", 2, "", "\"redlock-bench help run\" says more"},
		{"version now", 2, "", "version takes no arguments\n"},
		{"help walk", 2, "", "help takes no arguments but the name of a command"},
		{"-c 0", 2, "", `invalid value "0" for flag -c: want a whole number from 1 to 4096`},
		{"run -c 0", 2, "", `invalid value "0" for flag -c`},
		{"-c 3 run", 2, "", `"run" stands after the flags`},
		{"-nodes redis://127.0.0.1:1 -json /no/such/dir/x", 1, "", "flag -json: open /no/such/dir/x"},
		{"-nodes redis://127.0.0.1:1 -history /no/such/dir/x", 1, "", "flag -history: open /no/such/dir/x"},
		{"-nodes redis://u:hunter2@127.0.0.1:1", 1, "", "0 of 1 nodes answer, and 1 are needed\nredis://u:xxxxx@127.0.0.1:1: "},
		{"doctor", 2, "", "flag -nodes: want embedded:N, spawn:N, or URLs"},
		{"doctor -c 3", 2, "", "\"redlock-bench help doctor\" says more"},
		{"doctor redis://:hunter2@h", 2, "", "servers go to -nodes"},
		{"doctor -nodes redis://h,redis://:hunter2@h", 2, "", "nodes 1 and 2 are both h:6379"},
		{"doctor -nodes redis://u:hunter2@127.0.0.1:1", 3, "redlock-bench ", ""},
		{"doctor -nodes embedded:1 -json /no/such/dir/x", 3, "", "/no/such/dir/x"},
		{"doctor -nodes embedded:1 -durable -json -", 1, "{\n", "verdict: works, with warnings, 1 of 1 nodes may vote, 1 are needed\n"},
		{"drill -fault kil:2@3s", 2, "", "flag -fault: \"kil:2@3s\": unknown fault \"kil\""},
		{"drill -c 0", 2, "", "\"redlock-bench help drill\" says more"},
		{"drill -nodes redis://:hunter2@h", 2, "", "flag -nodes: want spawn:N with N from 1 to 15, compose or compose:PROJECT"},
		{"drill redis://:hunter2@h", 2, "", "servers go to -nodes"},
		{"drill -nodes compose -json /no/such/dir/x", 1, "", "/no/such/dir/x"},
		{"-nodes embedded:1 -n 8 -c 4", 0, "redlock-bench ", ""},
		{"run -nodes embedded:1 -n 8 -c 4", 0, "redlock-bench ", ""},
	} {
		stdout, stderr, status := outcome(strings.Fields(test.args)...)
		if status != test.status || !strings.HasPrefix(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) ||
			test.stdout == "" && stdout != "" || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%q: exit status %d, want %d\nstdout:\n%s\nstderr:\n%s", test.args, status, test.status, stdout, stderr)
		}
	}
}

func TestJSONGoesWhereItIsWanted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	for _, name := range []string{file, "-"} {
		stdout, stderr, status := outcome("-nodes", "embedded:1", "-n", "8", "-c", "4", "-json", name)
		object, text := []byte(stdout), stderr
		if name == file {
			var err error
			if object, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
			text = stdout
		}
		var r report
		if err := json.Unmarshal(object, &r); err != nil || status != exitClean || !r.Check.Clean {
			t.Errorf("-json %s: exit status %d, %v:\n%s", name, status, err, object)
		}
		if !strings.Contains(text, "verdict: clean") {
			t.Errorf("-json %s: the text is not where it should be:\n%s", name, text)
		}
	}
}

func TestInterruptEndsARunCleanly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-nodes", "embedded:3", "-c", "8", "-d", "1h")
	c.Env = append(os.Environ(), mainEnv+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	// The first progress line says that the load is on.
	progress := bufio.NewReader(errs)
	line, err := progress.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "distinct keys: ") {
		t.Fatalf("first line on stderr: %q, %v", line, err)
	}
	go io.Copy(io.Discard, progress)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if got := c.ProcessState.ExitCode(); got != exitInterrupted || !strings.HasSuffix(string(text), "verdict: clean, interrupted\n") {
		t.Errorf("exit status %d\n%s", got, text)
	}
}

func TestSecondInterruptEndsTheProgramAtOnce(t *testing.T) {
	signals := make(chan os.Signal)
	cancelled, exited := make(chan struct{}), make(chan int)
	go heed(signals, func() { close(cancelled) }, func(status int) { exited <- status }, io.Discard)
	signals <- os.Interrupt
	<-cancelled
	select {
	case status := <-exited:
		t.Fatalf("one interrupt ends the program with %d", status)
	default:
	}
	signals <- os.Interrupt
	if got := <-exited; got != exitInterrupted {
		t.Errorf("exit status %d", got)
	}
}

func TestExitStatus(t *testing.T) {
	clean, dirty := report{Check: reportCheck{Clean: true}}, report{}
	for _, test := range []struct {
		name        string
		r           report
		err         error
		interrupted bool
		want        int
	}{
		{"clean", clean, nil, false, 0},
		{"not clean", dirty, nil, false, 1},
		{"clean, interrupted", clean, nil, true, 130},
		{"not clean, interrupted", dirty, nil, true, 1},
		{"no run", dirty, errors.New("no server"), false, 1},
		{"clean, but not written", clean, errors.New("disk full"), false, 1},
		{"refused by the library", dirty, fmt.Errorf("%w: twice the same node", redlock.ErrInvalid), false, 2},
		{"interrupted before it began", dirty, fmt.Errorf("interrupted: %w", context.Canceled), true, 130},
	} {
		if got := status(test.r.Check, test.err, test.interrupted); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestProgress(t *testing.T) {
	recs := []*recorder{newRecorder(), newRecorder()}
	recs[0].ok.Store(30)
	recs[1].ok.Store(12)
	for _, test := range []struct {
		terminal bool
		want     string
	}{
		{false, "L\nL\n"},
		{true, "\r\x1b[KL\r\x1b[KL\r\x1b[K"},
	} {
		var b bytes.Buffer
		ticks, done := make(chan time.Time), make(chan struct{})
		followed := make(chan struct{})
		p := progress{out: &b, terminal: test.terminal, pace: func() <-chan time.Time { return ticks }}
		go func() {
			p.follow(phase{name: "distinct", cycles: 99}, recs, done)
			close(followed)
		}()
		ticks <- time.Time{}
		ticks <- time.Time{}
		close(done)
		<-followed
		got := b.String()
		for _, part := range strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune("\r\n\x1b", r) }) {
			if part = strings.TrimPrefix(part, "[K"); strings.HasPrefix(part, "distinct keys: 42 of 99 cycles, ") {
				got = strings.Replace(got, part, "L", 1)
			}
		}
		if got != test.want {
			t.Errorf("terminal %v: %q", test.terminal, b.String())
		}
	}
	if got, want := progressLine(phase{name: "contended", length: 5 * time.Second}, 3000, 1500*time.Millisecond),
		"contended keys: 1.5 of 5s, 3000 cycles, 2000/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
