package main

import (
	"regexp"
	"strconv"
	"strings"
)

// verdict is what a trial of a mutant has come to.
type verdict struct {
	mutant
	found string // what found it, in words
	seeds int    // it took, where it took seeds
	why   string // it does not count as found
	left  string // it could not be tried
}

func (v verdict) ok() bool { return v.why == "" }

var (
	seedLine  = regexp.MustCompile(`(?m)^\s+\w+\.go:\d+: seed (\d+):\n((?:\s+\t.*\n)+)`)
	failLine  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	moment    = regexp.MustCompile(`^at \S+: `)
	crashLine = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
)

// judge says what the output of a trial that has ended with a status means.
func (m mutant) judge(output string, status int) verdict {
	v := verdict{mutant: m}
	fail := failLine.FindAllStringSubmatch(output, -1)
	switch {
	case status == 0:
		v.why = "it survives " + m.command()
	case crashLine.MatchString(output):
		v.why = "the tests crash rather than find it: " + crashLine.FindString(output)
	case len(fail) == 0:
		v.why = "the tests end without a result:\n" + output
	case m.trial.seeds == 0:
		v.found = fail[len(fail)-1][1]
	default:
		m.found(output, &v)
	}
	return v
}

// found reads which seed has found what.
func (m mutant) found(output string, v *verdict) {
	seed := seedLine.FindStringSubmatch(output)
	if seed == nil {
		v.why = "the swarm fails without naming a seed:\n" + output
		return
	}
	v.seeds, _ = strconv.Atoi(seed[1]) // seeds are counted from 1
	lines := strings.Split(strings.TrimSpace(seed[2]), "\n")
	for _, line := range lines {
		violated := violation(line)
		for _, id := range m.caught {
			if violated.id == id {
				v.found = id + ": " + violated.what
				return
			}
		}
	}
	v.why = "seed " + seed[1] + " violates something else: " + strings.TrimSpace(lines[0])
}

// invariant is one that the simulator judges, by its id and in words.
type invariant struct {
	id, what string
	says     *regexp.Regexp
}

var invariants = []invariant{
	{"I1", "two hold a key", regexp.MustCompile(`^two hold|^two holders at once`)},
	{"I1", "a context outlives its lease", regexp.MustCompile(`context has not ended`)},
	{"I2", "a lease is on too few nodes", regexp.MustCompile(`nodes of \d+ have it$|holds \S+ by \d+ nodes of|holds nothing`)},
	{"I10", "a node in quarantine decides", regexp.MustCompile(`of them in quarantine`)},
	{"I3", "a fence goes back, or comes twice", regexp.MustCompile(`^a fence went back|^one fence for two leases`)},
	{"I4", "a holder's fence is refused", regexp.MustCompile(`its fence is refused`)},
	{"I4", "an append is lost or out of place", regexp.MustCompile(`^element `)},
	{"I5", "somebody touches what is another's, or over", regexp.MustCompile(`deleted on|extended after it had ended|end a connection of`)},
	{"I6", "a token is left", regexp.MustCompile(`with token|said nil, and`)},
	{"I7", "an attempt fails, or takes too long", regexp.MustCompile(`cannot be had|cannot be released|took .*, want|does not end`)},
	{"I8", "a release says something else", regexp.MustCompile(`a second Release|Extend says lost`)},
	{"Conn", "a key is in two flights at once", regexp.MustCompile(`two flights to`)}, // the contract of redlock.Conn
	{"I9", "something is left of a Locker", regexp.MustCompile(`after Close|^\S+: Close: |goroutine|blocked`)},
}

// violation is which invariant it is that a line of the simulator tells of.
func violation(line string) invariant {
	line = moment.ReplaceAllString(strings.TrimSpace(line), "")
	for _, i := range invariants {
		if i.says.MatchString(line) {
			return i
		}
	}
	return invariant{id: "?", what: line}
}
