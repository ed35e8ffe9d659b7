package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `Two is
three.

layer: sim
caught: I1 I2
budget: 40

--- a/dir/file.go
+++ b/dir/file.go
@@ -1,3 +1,3 @@
 one
-two
+three
 four
`

func TestMutantIsReadFromItsPatch(t *testing.T) {
	m, err := readMutant("M99-example", example)
	if err != nil {
		t.Fatal(err)
	}
	if m.says != "Two is three." || m.layer != "sim" || strings.Join(m.caught, " ") != "I1 I2" || m.trial.seeds != 40 || m.file() != "dir/file.go" {
		t.Errorf("%+v", m)
	}
	for what, replace := range map[string][2]string{
		"no layer":           {"layer: sim\n", ""},
		"an unknown layer":   {"sim", "unit"},
		"an unknown field":   {"budget", "bugdet"},
		"no number":          {"40", "few"},
		"nothing to run":     {"budget: 40", ""},
		"nothing violated":   {"I1 I2", ""},
		"no words":           {"Two is\nthree.\n", ""},
		"no patch":           {"--- a/dir/file.go", ""},
		"another file after": {"+++ b/dir/file.go", "+++ b/dir/other.go"},
		"no hunk":            {"@@ -1,3 +1,3 @@\n", ""},
		"a line of no patch": {"-two", "two"},
	} {
		if m, err := readMutant("M99", strings.Replace(example, replace[0], replace[1], 1)); err == nil {
			t.Errorf("%s: it is read as %+v", what, m)
		}
	}
}

func (m mutant) file() string { return m.patch[0].file }

func TestPatchAppliesToOnePlaceOrNone(t *testing.T) {
	m, err := readMutant("M99", example)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{"one\ntwo\nfour\n", "one\nthree\nfour\n"},
		{"new\nnew\none\ntwo\nfour\nfive\n", "new\nnew\none\nthree\nfour\nfive\n"},
		{"one\n2\nfour\n", ""},
		{"one\ntwo\nfour\none\ntwo\nfour\n", ""},
	} {
		if got, err := m.patch[0].apply(test.text); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q becomes %q, %v", test.text, got, err)
		}
	}
}

// What is wrong with a mutant's place is said before anybody looks for the mutant.
func TestEveryPatchAppliesToTheTree(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := readMutants(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		for _, c := range m.patch {
			text, err := os.ReadFile(filepath.Join(root, c.file))
			if err == nil {
				_, err = c.apply(string(text))
			}
			if err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

const found = `=== RUN   TestSwarmHoldsNoKeyTwice
    sim_test.go:34: seed 12:
        	at 2s: n1 has p:k0 with token t after all was closed
        	at 1.25s: two hold k1: c1, and c2 for 3ms more
    sim_test.go:58: again: go test ./sim
--- FAIL: TestSwarmHoldsNoKeyTwice (0.09s)
FAIL
`

func TestOnlyTheNamedViolationIsADetection(t *testing.T) {
	swarm := trial{pkg: simulator, run: "^TestSwarm", seeds: 40}
	named := trial{pkg: "./fence", run: "^TestX$"}
	for name, test := range map[string]struct {
		trial
		caught, output string
		status         int
		found          string
		why            string
	}{
		"first":        {swarm, "I6", found, 1, "I6: a token is left", ""},
		"second":       {swarm, "I1", found, 1, "I1: two hold a key", ""},
		"another":      {swarm, "I3", found, 1, "", "violates something else: at 2s: n1 has"},
		"none":         {swarm, "I1", "--- PASS: TestSwarm (1s)\nPASS\n", 0, "", "it survives"},
		"crash":        {swarm, "I1", found + "panic: runtime error\n", 2, "", "crash"},
		"no seed":      {swarm, "I1", "--- FAIL: TestSwarm (1s)\n", 1, "", "without naming a seed"},
		"nothing":      {swarm, "I1", "killed\n", 1, "", "without a result"},
		"a named test": {named, "I4", "--- FAIL: TestX (0s)\n    --- FAIL: TestX/late (0s)\n", 1, "TestX/late", ""},
	} {
		m := mutant{name: name, caught: strings.Fields(test.caught), trial: test.trial}
		v := m.judge(test.output, test.status)
		if v.found != test.found || v.ok() != (test.why == "") || !strings.Contains(v.why, test.why) {
			t.Errorf("%s: found %q, why %q", name, v.found, v.why)
		}
		if test.found != "" && test.trial.seeds > 0 && v.seeds != 12 {
			t.Errorf("%s: %d seeds", name, v.seeds)
		}
	}
}

func TestTableKeepsWhatWasNotTried(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("before\n"+begins+ends+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := readMutant("M99-example", example)
	if err != nil {
		t.Fatal(err)
	}
	other := m
	other.name, other.trial.seeds = "M98-other", 0
	all := []mutant{other, m}
	write := func(verdicts ...verdict) *table {
		t.Helper()
		page, err := readTable(file)
		if err == nil {
			err = page.write(all, verdicts)
		}
		if err == nil {
			page, err = readTable(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	page := write(verdict{mutant: m, found: "I1: x", seeds: 12}, verdict{mutant: other, why: "it survives"})
	if page.lacks(all) == nil || page.lacks(all[1:]) != nil || page.lacks(nil) == nil {
		t.Error("it does not know what it has")
	}
	page = write(verdict{mutant: other, found: "TestX"})
	if err := page.lacks(all); err != nil || page.rows[m.name] != (result{"I1: x", "12"}) || page.rows[other.name] != (result{"TestX", ""}) {
		t.Errorf("%v, %v", err, page.rows)
	}
	if page.before != "before\n" || page.after != "after\n" {
		t.Error("the rest of the page has changed")
	}
}
