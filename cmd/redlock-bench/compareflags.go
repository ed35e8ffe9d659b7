package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// compareSettings are what a comparison was asked for.
type compareSettings struct {
	nodes   nodeSet
	durable bool // remote nodes forget nothing in a restart
	modes   []string
	rivals  []rival.Lock
	workers []int // of the uncontended scenes, one each
	reps    int
	length  time.Duration // of what is measured in a scene
	leases  []int         // of the alive scenes, one each
	quick   bool
	json    string // a file name, "-" for stdout, "" for none
	html    string // a file name, "" for none
	write   string // a file name, "" for none
}

// compareModes are the modes in the order in which they run.
var compareModes = []string{trial.Limit, trial.Uncontended, trial.RTT, trial.Contended, trial.Fault, trial.Alive}

// parseCompare reads the arguments of the compare command, as parseRun does.
func parseCompare(args []string) (compareSettings, error) {
	s := compareSettings{}
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	nodes := fs.String("nodes", "spawn:5", "") // see parseRun
	fs.BoolVar(&s.quick, "quick", false, "")
	some(fs, &s.modes, "modes", compareModes)
	var names []string
	some(fs, &names, "with", rivalNames())
	numbers(fs, &s.workers, "c", []int{1, 8, 64, 256}, 4096)
	numbers(fs, &s.leases, "leases", []int{10_000, 30_000, 100_000}, 1_000_000)
	whole(fs, &s.reps, "reps", 3, 100)
	span(fs, &s.length, "d", 3*time.Second, 100*time.Millisecond, 10*time.Minute)
	fs.BoolVar(&s.durable, "durable", false, "")
	fs.StringVar(&s.json, "json", "", "")
	fs.StringVar(&s.html, "html", "", "")
	fs.StringVar(&s.write, "write", "", "")
	given, err := parse(fs, args)
	if err != nil {
		return s, err
	}
	if s.quick {
		s.hurry(given)
	}
	for _, l := range rival.All {
		if slices.Contains(names, l.Name) {
			s.rivals = append(s.rivals, l)
		}
	}
	if s.nodes, err = parseNodes(*nodes); err != nil {
		return s, fmt.Errorf("flag -nodes: %w", err)
	}
	if err = s.apart(); err != nil {
		return s, err
	}
	return s, s.possible(given)
}

// apart says which files would be written twice, or into one called -.
func (s *compareSettings) apart() error {
	for option, name := range map[string]string{"html": s.html, "write": s.write} {
		switch {
		case name == "-":
			return fmt.Errorf("flag -%s: want the name of a file: only -json writes to standard output", option)
		case name != "" && name == s.json:
			return fmt.Errorf("flag -%s: -json writes %s too: want a file for each", option, name)
		}
	}
	if s.html != "" && s.html == s.write {
		return fmt.Errorf("flag -html: -write writes %s too: want a file for each", s.html)
	}
	return nil
}

// hurry is what -quick changes, unless a flag says otherwise.
func (s *compareSettings) hurry(given map[string]bool) {
	if !given["reps"] {
		s.reps = 1
	}
	if !given["d"] {
		s.length = 500 * time.Millisecond
	}
	if !given["c"] {
		s.workers = []int{1, 64}
	}
	if !given["leases"] {
		s.leases = []int{1000}
	}
}

// possible says what cannot be done with these nodes, and takes it out unless it
// was asked for by name.
func (s *compareSettings) possible(given map[string]bool) error {
	if s.write != "" && s.nodes.kind == kindEmbedded {
		return errors.New("flag -write: figures of embedded servers have no place in documentation: give -nodes spawn:5")
	}
	for _, mode := range []string{trial.Fault, trial.RTT} {
		if s.nodes.kind == kindSpawn || !slices.Contains(s.modes, mode) {
			continue
		}
		if given["modes"] {
			return fmt.Errorf("flag -modes: %s needs servers that this program starts and may harm: give -nodes spawn:5", mode)
		}
		s.modes = slices.DeleteFunc(slices.Clone(s.modes), func(m string) bool { return m == mode })
	}
	return nil
}

func rivalNames() (names []string) {
	for _, l := range rival.All {
		names = append(names, l.Name)
	}
	return names
}

// some defines a flag that is a choice of words with a comma between them, all of
// them unless it is given. They keep their order.
func some(fs *flag.FlagSet, p *[]string, name string, all []string) {
	*p = all
	fs.Func(name, "", func(text string) error {
		asked := strings.Split(text, ",")
		*p = nil
		for _, word := range all {
			if slices.Contains(asked, word) {
				*p = append(*p, word)
			}
		}
		for _, word := range asked {
			if !slices.Contains(all, word) {
				return fmt.Errorf("%q is none of them: want some of %s, with a comma between them", word, strings.Join(all, ", "))
			}
		}
		return nil
	})
}

// numbers defines a flag that is some whole numbers from 1 to most, rising.
func numbers(fs *flag.FlagSet, p *[]int, name string, unset []int, most int) {
	*p = unset
	fs.Func(name, "", func(text string) error {
		*p = nil
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 || n > most {
				return fmt.Errorf("want whole numbers from 1 to %d with a comma between them", most)
			}
			*p = append(*p, n)
		}
		slices.Sort(*p)
		*p = slices.Compact(*p)
		return nil
	})
}
