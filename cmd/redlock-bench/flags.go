package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"
)

// settings are what a run was asked for.
type settings struct {
	nodes   nodeSet
	workers int
	length  time.Duration // of each phase, unless cycles says how much is to be done
	cycles  int           // of each phase; 0 means as many as fit into length
	ttl     time.Duration
	keys    int // that the workers fight for
	hold    time.Duration
	seed    uint64
	fenced  bool
	durable bool   // remote nodes forget nothing in a restart
	json    string // a file name, "-" for stdout, "" for none
	history string // a file name, "" for none
}

// parseRun reads the arguments of the run command. The error is flag.ErrHelp
// when help was asked for, and otherwise names the flag, what was wrong with it
// and what would be right.
func parseRun(args []string) (settings, error) {
	s := settings{}
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	// A value of -nodes may hold passwords, and the flag package repeats what it
	// cannot parse, so that flag takes anything here and is read below.
	nodes := fs.String("nodes", "embedded:5", "")
	whole(fs, &s.workers, "c", 64, 4096)
	span(fs, &s.length, "d", 5*time.Second, time.Millisecond, 24*time.Hour)
	whole(fs, &s.cycles, "n", 0, 1_000_000_000)
	span(fs, &s.ttl, "ttl", 10*time.Second, 20*time.Millisecond, time.Hour)
	whole(fs, &s.keys, "keys", 4, 100_000)
	span(fs, &s.hold, "hold", time.Millisecond, 0, time.Hour)
	number(fs, &s.seed, "seed", 1)
	fs.BoolVar(&s.fenced, "fenced", false, "")
	fs.BoolVar(&s.durable, "durable", false, "")
	fs.StringVar(&s.json, "json", "", "")
	fs.StringVar(&s.history, "history", "", "")
	given, err := parse(fs, args)
	if err != nil {
		return s, err
	}
	if given["d"] && given["n"] {
		return s, errors.New("flags -d and -n: give one of them, a time or a number of cycles")
	}
	if s.hold > s.ttl/2 {
		return s, fmt.Errorf("invalid value %v for flag -hold: want at most half of -ttl %v, %v", s.hold, s.ttl, s.ttl/2)
	}
	if s.nodes, err = parseNodes(*nodes); err != nil {
		return s, fmt.Errorf("flag -nodes: %w", err)
	}
	return s, nil
}

// doctorSettings are what the doctor was asked for.
type doctorSettings struct {
	nodes       nodeSet
	maxTTL      time.Duration
	nodeTimeout time.Duration // 0: the lock's own
	prefix      string
	fenced      bool
	durable     bool
	json        string // a file name, "-" for stdout, "" for none
}

// parseDoctor reads the arguments of the doctor command, as parseRun does.
func parseDoctor(args []string) (doctorSettings, error) {
	s := doctorSettings{}
	fs := flag.NewFlagSet("doctor", flag.ContinueOnError)
	nodes := fs.String("nodes", "", "") // see parseRun
	span(fs, &s.maxTTL, "max-ttl", 30*time.Second, 20*time.Millisecond, 24*time.Hour)
	span(fs, &s.nodeTimeout, "node-timeout", 50*time.Millisecond, time.Millisecond, 6*time.Hour)
	s.nodeTimeout = 0
	fs.StringVar(&s.prefix, "prefix", "", "")
	fs.BoolVar(&s.fenced, "fenced", false, "")
	fs.BoolVar(&s.durable, "durable", false, "")
	fs.StringVar(&s.json, "json", "", "")
	_, err := parse(fs, args)
	if err != nil {
		return s, err
	}
	if s.nodeTimeout > s.maxTTL/4 {
		return s, fmt.Errorf("invalid value %v for flag -node-timeout: want at most a quarter of -max-ttl %v, %v", s.nodeTimeout, s.maxTTL, s.maxTTL/4)
	}
	if s.nodes, err = parseNodes(*nodes); err != nil {
		return s, fmt.Errorf("flag -nodes: %w", err)
	}
	return s, nil
}

// parse reads the arguments of a command and says which flags they give.
func parse(fs *flag.FlagSet, args []string) (given map[string]bool, err error) {
	fs.SetOutput(io.Discard) // the caller prints the error, once
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, stray(fs.Arg(0))
	}
	given = make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given, nil
}

// errUnknown does not repeat the word: it may be a URL with a password.
var errUnknown = errors.New("unknown command: want run, compare, drill, doctor, version or help first, or only flags, which start with -; servers go to -nodes")

// stray is the error for an argument that is none. It may be a URL with a
// password, so it is repeated only if it is a command's name.
func stray(arg string) error {
	if usages[arg] != "" {
		return fmt.Errorf("%q stands after the flags: the command comes first, redlock-bench %s [flags]", arg, arg)
	}
	return errors.New("an argument after the flags: every flag starts with -, and servers go to -nodes")
}

// parseNone reads the arguments of a command that takes none.
func parseNone(name string, args []string) error {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		if name == "help" {
			return errors.New("help takes no arguments but the name of a command: run, compare, drill, doctor, version or help")
		}
		return fmt.Errorf("%s takes no arguments", name)
	}
	return nil
}

// whole defines a flag that is a whole number from 1 to most.
func whole(fs *flag.FlagSet, p *int, name string, unset, most int) {
	*p = unset
	fs.Func(name, "", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("want a whole number from 1 to %d", most)
		}
		*p = n
		return nil
	})
}

// number defines a flag that is any whole number from 0.
func number(fs *flag.FlagSet, p *uint64, name string, unset uint64) {
	*p = unset
	fs.Func(name, "", func(text string) (err error) {
		if *p, err = strconv.ParseUint(text, 10, 64); err != nil {
			return errors.New("want a whole number from 0 to 18446744073709551615")
		}
		return nil
	})
}

// span defines a flag that is a time from least to most.
func span(fs *flag.FlagSet, p *time.Duration, name string, unset, least, most time.Duration) {
	*p = unset
	fs.Func(name, "", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return fmt.Errorf("want a time with its unit from %v to %v, such as %v", least, most, unset)
		}
		*p = d
		return nil
	})
}
