//go:build unix

package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// skewed starts a server with a clock of its own, and a client of it.
func skewed(t *testing.T) (*Server, *client) {
	t.Helper()
	RequireClock(t)
	s := start(t, Options{SkewedClock: true})
	return s, dial(t, "tcp", s.Addr())
}

// clock asks for the server's time, and brackets the moment by ours.
func (c *client) clock() (shown, before, after time.Time) {
	c.t.Helper()
	before = time.Now()
	c.send("TIME")
	c.line()
	sec, _ := strconv.ParseInt(c.bulk(), 10, 64)
	usec, _ := strconv.ParseInt(c.bulk(), 10, 64)
	return time.Unix(sec, usec*1000), before, time.Now()
}

// ahead checks that a server's clock is ahead by this much.
func (c *client) ahead(want time.Duration) {
	c.t.Helper()
	shown, before, after := c.clock()
	const unit = time.Microsecond // of what the server says
	if shown.Before(before.Add(want-unit)) || shown.After(after.Add(want+unit)) {
		c.t.Errorf("it shows %v between %v and %v: want it ahead by %v", shown, before, after, want)
	}
}

func (c *client) number(words ...string) int {
	c.t.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(c.ask(words...), ":"))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func TestStepForwardEndsKeysAtOnce(t *testing.T) {
	s, c := skewed(t)
	c.ahead(0)
	c.ask("SET", "short", "v", "EX", "3000")
	c.ask("SET", "long", "v", "EX", "9000")
	if err := s.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := c.number("PTTL", "short"); got != -2 {
		t.Errorf("the short one has %d ms more", got)
	}
	if got := c.number("PTTL", "long"); got <= 0 || got > 5400_000 {
		t.Errorf("the long one has %d ms more", got)
	}
	c.ahead(time.Hour)
}

func TestStepBackMakesKeysLast(t *testing.T) {
	s, c := skewed(t)
	c.ask("SET", "k", "v", "EX", "3000")
	if err := s.StepClock(-time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := c.number("PTTL", "k"); got <= 3600_000 || got > 6600_000 {
		t.Errorf("it has %d ms more", got)
	}
	c.ahead(-time.Hour)
}

func TestClockRunsAtItsRate(t *testing.T) {
	for _, rate := range []float64{2, 0.5, 1000} {
		s, c := skewed(t)
		if err := s.StepClock(time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.SetClockRate(rate); err != nil {
			t.Fatal(err)
		}
		shown1, before1, after1 := c.clock()
		time.Sleep(50 * time.Millisecond) // enough to tell the rates apart
		shown2, before2, after2 := c.clock()
		passed := float64(shown2.Sub(shown1))
		const unit = float64(time.Microsecond)
		least, most := float64(before2.Sub(after1))*rate-unit, float64(after2.Sub(before1))*rate+unit
		if passed < least || passed > most {
			t.Errorf("at %v times the rate %v passed, want %v to %v", rate, time.Duration(passed), time.Duration(least), time.Duration(most))
		}
		if shown1.Before(before1.Add(time.Minute)) {
			t.Error("the change of rate has set the clock back")
		}
	}
}

func TestClockStaysThroughRestartsAndMovesTheUptime(t *testing.T) {
	s, _ := skewed(t)
	if err := s.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, data := range []Data{Wipe, Keep} {
		if err := s.Restart(patience(t), data); err != nil {
			t.Fatal(err)
		}
		dial(t, "tcp", s.Addr()).ahead(time.Hour)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(patience(t), Wipe); err != nil {
		t.Fatal(err)
	}
	c := dial(t, "tcp", s.Addr())
	c.ahead(2 * time.Hour)
	if up := c.uptime(); up >= 3600 {
		t.Errorf("it has been up for %d s", up)
	}
	if err := s.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	// The server looks at its clock now and then.
	for deadline := time.Now().Add(hang); c.uptime() < 3600; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it has been up for %d s", c.uptime())
		}
	}
}

func (c *client) uptime() int {
	c.t.Helper()
	c.send("INFO", "server")
	_, text, _ := strings.Cut(c.bulk(), "uptime_in_seconds:")
	text, _, _ = strings.Cut(text, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func TestOnlyWallClocksAreMoved(t *testing.T) {
	RequireClock(t)
	w, err := newWallClock(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	program := filepath.Join(t.TempDir(), "clocks")
	if said, err := exec.Command(compiler()[0], append(compiler()[1:], "-o", program, "testdata/clocks.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	w.set(func(now *setting) { now.shown += int64(time.Hour) })
	before := time.Now().Add(time.Hour).UnixNano()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), w.environment()...)
	out, err := cmd.Output()
	after := time.Now().Add(time.Hour).UnixNano()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 6 {
		t.Fatalf("%s", out)
	}
	units := []int64{1, 1, 1000, int64(time.Second)}
	for i, line := range lines {
		var name string
		var n [3]int64
		words, _ := fmt.Sscan(line, &name, &n[0], &n[1], &n[2])
		if i < 4 { // a wall clock
			if words != 2 || n[0] < before/units[i]*units[i] || n[0] > after {
				t.Errorf("%s: want %d to %d", line, before, after)
			}
		} else if words != 4 || n[0] > n[1] || n[1] > n[2] {
			t.Errorf("%s: want them to rise", line)
		}
	}
}

func TestClockOfItsOwnIsAskedFor(t *testing.T) {
	s := start(t, Options{})
	if err := s.StepClock(time.Hour); err == nil {
		t.Error("the machine's clock was set")
	}
	if err := s.SetClockRate(2); err == nil {
		t.Error("the machine's clock runs at another rate")
	}
}

func TestCloseLeavesNoClock(t *testing.T) {
	RequireClock(t)
	dir := t.TempDir()
	s := start(t, Options{SkewedClock: true, Dir: dir})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	leftNothingIn(t, dir)
	if err := s.StepClock(time.Hour); !errors.Is(err, ErrClosed) {
		t.Errorf("StepClock after Close: %v", err)
	}
	script(t, "exit 3")
	if s, err := Start(patience(t), Options{SkewedClock: true, Dir: dir}); err == nil {
		s.Close()
		t.Fatal("it started")
	}
	leftNothingIn(t, dir)
}

// noCompilerEnv makes this test program one that finds no compiler.
const noCompilerEnv = "REDISPROC_TEST_NO_COMPILER"

func TestMissingCompilerIsASkipAndInCIAFailure(t *testing.T) {
	if os.Getenv(noCompilerEnv) != "" {
		var tb fakeTB
		RequireClock(&tb)
		_, err := Start(t.Context(), Options{SkewedClock: true})
		fmt.Println(tb.ended, err)
		return
	}
	Require(t)
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMissingCompilerIsASkipAndInCIAFailure$")
		cmd.Env = append(os.Environ(), noCompilerEnv+"=1", "CC=/no/such/compiler", "CI="+ci)
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), want+" a clock of its own: ") || !strings.Contains(string(out), "/no/such/compiler") {
			t.Errorf("CI=%q: %v\n%s", ci, err, out)
		}
	}
}
