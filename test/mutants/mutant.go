package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one wrong version of the tree, and what is to find it.
type mutant struct {
	name string
	says string // what is wrong with it
	patch
	layer  string
	caught []string // the invariants, any of which is to be violated
	trial
}

// trial is a run of tests that a mutant must not pass.
type trial struct {
	pkg   string
	run   string // the tests, as for go test -run
	seeds int    // of the simulator's swarm; 0 for other tests
}

const simulator = "./sim"

// budget is what the trial may take.
func (t trial) budget() string {
	if t.seeds > 0 {
		return fmt.Sprint(t.seeds, " seeds")
	}
	return "1 run"
}

// command is what runs the same by hand.
func (t trial) command() string {
	s := fmt.Sprintf("go test %s -run '%s'", t.pkg, t.run)
	if t.seeds > 0 {
		s += fmt.Sprintf(" -sim.seeds %d", t.seeds)
	}
	return s
}

// layers are where tests may stand that find a mutant. Tests of a rule by itself are
// none of them.
var layers = []string{"sim", "fencemodel", "adapter", "server", "fence", "worlds"}

// readMutants reads the mutants of a directory, in the order of their names.
func readMutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no patches: %v", dir, err)
	}
	slices.Sort(files)
	var all []mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := readMutant(strings.TrimSuffix(filepath.Base(file), ".patch"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all = append(all, m)
	}
	return all, nil
}

// readMutant reads a patch and the lines at its head: what is wrong, an empty line,
// and then
//
//	layer:  which tests are to find it
//	caught: the invariants that it violates, by their ids, any of which will do
//	budget: the number of seeds within which the swarm of the simulator does, or
//	test:   the package and the pattern of another test that does
func readMutant(name, text string) (m mutant, err error) {
	head, diff, _ := strings.Cut(text, "\n--- ")
	says, fields, _ := strings.Cut(head, "\n\n")
	m.name, m.says = name, strings.Join(strings.Fields(says), " ")
	for line := range strings.Lines(fields) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch field {
		case "\n":
		case "layer":
			m.layer = value
		case "caught":
			m.caught = strings.Fields(value)
		case "budget":
			m.pkg, m.run = simulator, "^TestSwarmHoldsNoKeyTwice$"
			if m.seeds, err = strconv.Atoi(value); err != nil {
				return m, err
			}
		case "test":
			m.pkg, m.run, _ = strings.Cut(value, " ")
		default:
			return m, fmt.Errorf("%q: want layer, caught, and budget or test", line)
		}
	}
	switch {
	case !slices.Contains(layers, m.layer):
		return m, fmt.Errorf("layer %q: want one of %q", m.layer, layers)
	case m.says == "" || m.pkg == "" || m.run == "" || len(m.caught) == 0:
		return m, fmt.Errorf("it does not say what it is, what it violates, or what is to find it")
	}
	m.patch, err = readPatch("--- " + diff)
	return m, err
}

// overlay writes the mutated files to dir, and what has go build with them in the
// place of those of the tree at root. Nothing in the tree changes.
func (m mutant) overlay(root, dir string) (string, error) {
	var entries []string
	for i, c := range m.patch {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			return "", err
		}
		wrong, err := c.apply(string(text))
		if err != nil {
			return "", err
		}
		file := filepath.Join(dir, fmt.Sprint(i, "-", filepath.Base(c.file)))
		if err := os.WriteFile(file, []byte(wrong), 0o644); err != nil {
			return "", err
		}
		entries = append(entries, fmt.Sprintf("%q: %q", filepath.Join(root, c.file), file))
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, fmt.Appendf(nil, `{"Replace": {%s}}`, strings.Join(entries, ", ")), 0o644)
}
