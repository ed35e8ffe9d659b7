// Command mutants breaks the library in known ways, one at a time, and wants the
// tests that are named for each to notice. A mutant is a patch in this directory;
// its head says what is wrong and what is to find it. Nothing in the tree changes.
//
//	go run ./test/mutants                  # all
//	go run ./test/mutants M03 M26          # those whose names begin so
//	go run ./test/mutants -quick           # those that are found fast, as CI does
//	go run ./test/mutants -write           # … and the table in docs/mutations.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// quickly is how many seeds a mutant may take that -quick runs.
const quickly = 300

func main() {
	quick := flag.Bool("quick", false, fmt.Sprintf("only mutants whose budget is %d seeds or less, or one test", quickly))
	write := flag.Bool("write", false, "write the table in docs/mutations.md")
	seeds := flag.Int("seeds", 0, "the budget instead of each mutant's own")
	atOnce := flag.Int("p", 2, "how many to try at once")
	flag.Parse()
	if *write && (*quick || *seeds != 0 || flag.NArg() > 0) {
		fmt.Fprintln(os.Stderr, "the table is of all mutants, each with its own budget")
		os.Exit(2)
	}
	if err := run(*quick, *write, *seeds, *atOnce, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(quick, write bool, seeds, atOnce int, names []string) error {
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
	all = slices.DeleteFunc(all, func(m mutant) bool {
		named := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(m.name, name) })
		return quick && m.trial.seeds > quickly || len(names) > 0 && !named
	})
	if len(all) == 0 {
		return fmt.Errorf("no mutant is so named: %q", names)
	}
	if seeds > 0 {
		for i := range all {
			if all[i].trial.seeds > 0 {
				all[i].trial.seeds = seeds
			}
		}
	}
	if err := b.control(all, atOnce); err != nil {
		return err
	}
	verdicts, alive := make([]verdict, len(all)), 0
	each(len(all), atOnce, func(i int) { verdicts[i] = b.try(all[i]) }, func(i int) {
		fmt.Println(verdicts[i].line())
		if !verdicts[i].ok() {
			alive++
		}
	})
	fmt.Printf("%d mutants, %d not found, in %v\n", len(all), alive, time.Since(began).Round(time.Second))
	if alive > 0 {
		return fmt.Errorf("a mutant that no test finds is a hole in the tests")
	}
	if write {
		return writeTable(filepath.Join(b.root, "docs", "mutations.md"), verdicts)
	}
	return nil
}
