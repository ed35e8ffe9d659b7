package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// bench is where mutants are tried.
type bench struct {
	root    string // of the tree
	scratch string
	lacking map[trial]string // trials that this machine cannot run, and why
}

func newBench() (*bench, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/quorumlock/quorumlock").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	scratch, err := os.MkdirTemp("", "mutants")
	return &bench{root: strings.TrimSpace(string(out)), scratch: scratch, lacking: map[trial]string{}}, err
}

// control has the tree as it is pass all that the mutants must not. The swarm runs
// as many seeds as any mutant may take.
func (b *bench) control(mutants []mutant, atOnce int) error {
	var trials []trial
	byTest := map[trial]int{}
	for _, m := range mutants {
		t := trial{pkg: m.pkg, run: m.run}
		if i, known := byTest[t]; known {
			trials[i].seeds = max(trials[i].seeds, m.trial.seeds)
			continue
		}
		byTest[t] = len(trials)
		trials = append(trials, m.trial)
	}
	failures := make([]error, len(trials))
	each(len(trials), atOnce, func(i int) {
		t := trials[i]
		output, status, err := b.run(t, fmt.Sprint("control-", i), "")
		switch {
		case err != nil:
			failures[i] = err
		case status != 0:
			failures[i] = fmt.Errorf("the tree as it is does not pass %s:\n%s", t.command(), output)
		case strings.Contains(output, "--- SKIP") && !strings.Contains(output, "--- PASS"):
			failures[i] = skipped{output}
		case !strings.Contains(output, "--- PASS"):
			failures[i] = fmt.Errorf("%s runs no test", t.command())
		}
	}, func(int) {})
	for i, err := range failures {
		if why := (skipped{}); errors.As(err, &why) {
			b.lacking[trial{pkg: trials[i].pkg, run: trials[i].run}] = why.output
			failures[i] = nil
		}
	}
	return errors.Join(failures...)
}

// skipped is a trial that this machine cannot run.
type skipped struct{ output string }

func (s skipped) Error() string { return s.output }

// try runs the trial of one mutant.
func (b *bench) try(m mutant) verdict {
	if why, lacking := b.lacking[trial{pkg: m.pkg, run: m.run}]; lacking {
		return verdict{mutant: m, left: why}
	}
	dir := filepath.Join(b.scratch, m.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return verdict{mutant: m, why: err.Error()}
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(b.root, dir)
	if err != nil {
		return verdict{mutant: m, why: err.Error()}
	}
	output, status, err := b.run(m.trial, m.name, overlay)
	if err != nil {
		return verdict{mutant: m, why: err.Error()}
	}
	return m.judge(output, status)
}

// run builds the tests of a trial, with other files in the place of some if there
// is an overlay, and runs them. That they cannot be built is the error.
func (b *bench) run(t trial, name, overlay string) (output string, status int, err error) {
	program := filepath.Join(b.scratch, name+".test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", program, t.pkg)
	build.Dir = b.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("%s does not build: %w\n%s", name, err, out)
	}
	defer os.Remove(program)
	args := []string{"-test.run", t.run, "-test.v", "-test.timeout", "15m"}
	if t.seeds > 0 {
		args = append(args, "-sim.seeds", fmt.Sprint(t.seeds), "-sim.start", "1", "-sim.short=false")
	}
	test := exec.Command(program, args...)
	test.Dir = filepath.Join(b.root, t.pkg)
	var out bytes.Buffer
	test.Stdout, test.Stderr = &out, &out
	err = test.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.String(), exit.ExitCode(), nil
	}
	return out.String(), 0, err
}

// each calls do for 0 to n-1, a few at once, and then after for each in order, as
// soon as all before it are done. It returns when all are.
func each(n, atOnce int, do, after func(i int)) {
	done := make([]chan struct{}, n)
	for i := range done {
		done[i] = make(chan struct{})
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, atOnce) {
		workers.Go(func() {
			for i := range next {
				do(i)
				close(done[i])
			}
		})
	}
	workers.Go(func() {
		defer close(next)
		for i := range n {
			next <- i
		}
	})
	for i := range done {
		<-done[i]
		after(i)
	}
	workers.Wait()
}
