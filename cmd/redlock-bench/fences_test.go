package main

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// fencesOf runs a session on a lock inside this process with such fences.
func fencesOf(t *testing.T, of func(n int64) fence.Token, args ...string) (report, string) {
	t.Helper()
	s, text := testSession(t, "embedded:1", args...)
	s.makeLocker = func(*cluster, redlock.Config) (locker, error) { return &fakeLocker{fence: of}, nil }
	r, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, text.String()
}

func TestFencesThatDoNotRiseFailTheRun(t *testing.T) {
	for _, test := range []struct {
		name  string
		of    func(n int64) fence.Token
		fault string
	}{
		{"one repeats", func(n int64) fence.Token { return fence.Token(n - n/100) }, "one fence for two leases: 99 for "},
		{"all are the same", func(int64) fence.Token { return 7 }, "one fence for two leases: 7 for "},
		{"they fall", func(n int64) fence.Token { return fence.Token(1000 - n) }, "a fence went back: holder "},
		{"one lease has none", func(n int64) fence.Token { return fence.Token(n * (n % 100)) }, "1 leases came without a fence"},
		{"no lease has one", func(int64) fence.Token { return 0 }, "160 leases came without a fence"},
		{"they are none", func(n int64) fence.Token { return fence.Token(1<<53 + n) }, " is none"},
	} {
		// One key, so that any two leases can be compared.
		r, text := fencesOf(t, test.of, "-fenced", "-keys", "1", "-c", "1")
		if r.Check.Clean || r.Check.Overlaps != 0 || status(r.Check, nil, false) != exitFailed {
			t.Errorf("%s: check %+v", test.name, r.Check)
		}
		for _, want := range []string{"FAULT: ", test.fault, "verdict: FAILED\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", test.name, want, text)
			}
		}
	}
}

func TestRunSaysHowManyFencesWereJudged(t *testing.T) {
	rising := func(n int64) fence.Token { return fence.Token(n) }
	r, text := fencesOf(t, rising, "-fenced")
	if !r.Check.Clean || r.Check.Fenced != 160 || r.Check.FenceFaults != 0 || !strings.Contains(text, "\n  fences rise: 160 judged\n") {
		t.Errorf("check %+v\n%s", r.Check, text)
	}
	r, text = fencesOf(t, nil)
	if !r.Check.Clean || r.Check.Fenced != 0 || strings.Contains(text, "fence") {
		t.Errorf("without fences: check %+v\n%s", r.Check, text)
	}
}

func TestFencedRunIsClean(t *testing.T) {
	for _, nodes := range []string{"embedded:3", "spawn:3"} {
		t.Run(nodes, func(t *testing.T) {
			if nodes == "spawn:3" {
				redisproc.Require(t)
			}
			s, text := testSession(t, nodes, "-fenced")
			r, err := s.run(t.Context())
			wantClean(t, r, err, text.String(), 80)
			if r.Check.Fenced != r.Check.Holds || r.Check.FenceFaults != 0 {
				t.Errorf("check %+v", r.Check)
			}
		})
	}
}
