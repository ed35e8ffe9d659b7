// Command mutants breaks the library in known ways, one at a time, and wants the
// tests that are named for each to notice. A mutant is a patch in this directory;
// its head says what is wrong and what is to find it. Nothing in the tree changes.
//
//	go run ./test/mutants                  # all
//	go run ./test/mutants M03 M26          # those whose names begin so
//	go run ./test/mutants -quick           # those that are found fast, as CI does
//	go run ./test/mutants -write           # and write what was found into docs/mutations.md
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// quickly is how many seeds a mutant may take that -quick runs.
const quickly = 100

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, fmt.Sprintf("only mutants whose budget is %d seeds or less, or one test that needs no server; and whether the page knows all", quickly))
	flag.BoolVar(&o.write, "write", false, "write what was found into docs/mutations.md")
	flag.IntVar(&o.seeds, "seeds", 0, "the budget instead of each mutant's own")
	flag.IntVar(&o.atOnce, "p", 2, "how many to try at once")
	flag.Parse()
	o.names = flag.Args()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	quick, write  bool
	seeds, atOnce int
	names         []string // what those begin with that are tried; none means all
}

// want reports whether a mutant is to be tried.
func (o options) want(m mutant) bool {
	named := len(o.names) == 0 || slices.ContainsFunc(o.names, func(name string) bool { return strings.HasPrefix(m.name, name) })
	return named && !(o.quick && m.isSlow())
}

// isSlow reports whether a mutant is left to make mutants.
func (m mutant) isSlow() bool {
	return m.trial.seeds > quickly || m.layer != "sim" && m.layer != "fencemodel"
}

func run(o options) error {
	began := time.Now()
	b, err := newBench()
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	all, err := readMutants(filepath.Join(b.root, "test", "mutants"))
	if err != nil {
		return err
	}
	page, err := readTable(filepath.Join(b.root, "docs", "mutations.md"))
	if err != nil {
		return err
	}
	if o.quick && !o.write {
		if err := page.lacks(all); err != nil {
			return err
		}
	}
	var tried []mutant
	for _, m := range all {
		if o.want(m) {
			if o.seeds > 0 && m.trial.seeds > 0 {
				m.trial.seeds = o.seeds
			}
			tried = append(tried, m)
		}
	}
	if len(tried) == 0 {
		return fmt.Errorf("no mutant is so named: %q", o.names)
	}
	if err := b.control(tried, o.atOnce); err != nil {
		return err
	}
	verdicts, alive := make([]verdict, len(tried)), 0
	var unwritten error
	each(len(tried), o.atOnce, func(i int) { verdicts[i] = b.try(tried[i]) }, func(i int) {
		fmt.Println(verdicts[i].line())
		if !verdicts[i].ok() {
			alive++
		}
		if o.write && unwritten == nil {
			unwritten = page.write(all, verdicts[:i+1]) // so that what was found is kept if this is interrupted
		}
	})
	fmt.Printf("%d mutants, %d not found, in %v\n", len(tried), alive, time.Since(began).Round(time.Second))
	if unwritten != nil {
		return unwritten
	}
	if alive > 0 {
		return errors.New("a mutant that no test finds is a hole in the tests")
	}
	return nil
}
