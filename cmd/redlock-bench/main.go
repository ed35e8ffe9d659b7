// Command redlock-bench measures the quorum lock, and checks while it does that
// the lock is one: no two holders of a key at once, and nothing left behind.
//
// "redlock-bench help run" describes its flags, and "help" the other commands. With -json FILE the results are
// written as one JSON object as well. Its fields do not change their names or
// meanings; new ones may be added. Every time is in the unit that its name ends
// with.
//
//	started          when the run began (RFC 3339)
//	interrupted      whether it was ended early
//	software         redlock_bench, quorumlock, go_redis: versions
//	machine          cpus, cpu, gomaxprocs, os, arch, kernel, go
//	settings         nodes (embedded, spawn or remote), workers, phase_s or cycles,
//	                 ttl_ms, keys, hold_ms, seed, fenced, durable (nodes)
//	nodes[]          url (without password), server, or error
//	phases[]         in the order in which they ran:
//	  name           distinct or contended
//	  seconds        how long it took
//	  ok             cycles that succeeded from acquire to release
//	  cycles_per_s   ok by seconds
//	  failed         cycles that did not, by kind: held, no_quorum, too_slow, lost,
//	                 timeout, closed, other
//	  first_errors   the first error of each kind there was
//	  cut_short      cycles that the end of the phase interrupted; no failures
//	  latency        acquire, hold, release, cycle, of the cycles in ok: each with
//	                 p50_us, p99_us, p99_9_us, max_us, to about 1 %. There is no
//	                 hold where nothing was held any longer than to let it go.
//	check            clean: the verdict
//	                 holds, keys, fenced (holds with a fence): how much was judged
//	                 overlaps, fence_faults, left: how much was wrong
//	                 nodes_asked: how many nodes were searched for keys left
//	                 not_asked: those that could not be, and why
//	                 faults: in words what was wrong, only the first of many
//	                 close: what closing the locker complained of
//
// "redlock-bench doctor" says what nodes are and which may vote, with -json FILE as
// an object under the same rules:
//
//	checked          when (RFC 3339)
//	software         as above
//	settings         nodes, max_ttl_ms, node_timeout_ms, prefix, fenced, durable: what
//	                 the nodes were judged by
//	nodes[]          node, votes, why_not, quarantined_s, run (the beginning of its
//	                 run_id), durable (yes, no or unknown), clock_offset (ahead_ms,
//	                 within_ms), facts (what it says of itself; none without answer)
//	findings[]       severity (problem, warning or note), node (none for all of them
//	                 together), text; the worst first
//	voters, quorum   how many may vote now, and how many have to
//	quorum_may_vote  whether that is enough
//
// The fields are those of redlock.Report.
//
// "redlock-bench drill" puts load on nodes while faults happen to them, with -json
// FILE under the same rules, every moment counted from where the load began:
//
//	started, interrupted, software, machine, nodes
//	                 as of a run; nodes[0] is n1
//	settings         nodes (spawn or compose), schedule, workers, lockers, length_s,
//	                 ttl_ms, quarantine_s (of a node that has restarted),
//	                 node_timeout_ms, keys, hold_ms, seed, fenced, durable, proxied
//	faults[]         kind, nodes, lag_ms, began_s, done_s, proof (what showed that it
//	                 had happened) or error (why it had not); heal is one as well
//	timeline[]       about a second each: until_s, grants, grants_per_s, p99_own_us and
//	                 p99_shared_us (of acquires on keys that nobody else wants, and of
//	                 those that are fought for), failed by kind, at_fault (nodes)
//	phases[]         distinct, contended and kept, all at the same time, as of a run
//	outcome          grants; longest_gap_s without one, longest_gap_from_s
//	                 calm and minority: grants while no node was at fault and while a
//	                 minority was or was in quarantine, and longest_ms that one took
//	                 beyond its wait for a holder, at_s; aim_beyond_ms is the aim
//	                 recoveries[]: a majority was silent_s, and back_s with as many as
//	                 are needed, and first_grant_s after that; aim_first_grant_s
//	check            as of a run; appended and store_faults are of the store that
//	                 checks fences
//
// "redlock-bench compare" measures this lock and others, with -json FILE under the
// same rules:
//
//	started, interrupted, software, machine
//	                 as of a run; took_s; server, such as "redis 7.0.15"
//	settings         nodes (embedded, spawn or remote), nodes_count, repetitions,
//	                 length_s, quick
//	implementations[]
//	                 name, title, module, version, setup, promises, does_not_promise
//	scenes[]         name, mode, title, workers, lockers, leases, and rows[] for who
//	                 was in it:
//	  who, title, runs
//	  figures        by name, with its unit at the end: median, min, max
//	  vs_redsync     by the same names: the median of same-repetition ratios
//	  share_of_limit of the machine's for plain commands
//	  failed, cut, overlaps, left, foreign_cores, first_errors
//	aims[]           what, value, unit, at_least (or else at most), goal, stretch
//	measurements[]   scene, who, repetition, and figures or error: all that the rest
//	                 is made of, with fault.timeline in tenths of a second
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/quorumlock/quorumlock/redlock"
)

// Exit statuses, as runUsage and doctorUsage have them.
const (
	exitClean       = 0
	exitFailed      = 1 // of run
	exitWarned      = 1 // of doctor
	exitUsage       = 2
	exitProblems    = 3
	exitInterrupted = 130
)

func main() {
	// What go-redis would log about connections is in the errors of the cycles.
	logging.Disable()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Once nobody reads what is printed, nobody waits for the end either. Each write
	// says so again, and only the first counts: a second signal ends all at once.
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	go func() { signals <- <-unread }()
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr, signals))
}

// command does what the arguments say and returns the exit status.
func command(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	name := "run"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	err := errUnknown
	switch name {
	case "run":
		var s settings
		if s, err = parseRun(args); err == nil {
			return run(s, stdout, stderr, signals)
		}
	case "drill":
		var s drillSettings
		if s, err = parseDrill(args); err == nil {
			return runDrill(s, stdout, stderr, signals)
		}
	case "compare":
		var s compareSettings
		if s, err = parseCompare(args); err == nil {
			return compare(s, stdout, stderr, signals)
		}
	case childCommand:
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go heed(signals, cancel, os.Exit, stderr)
		return runChild(ctx, os.Stdin, stdout)
	case "doctor":
		var s doctorSettings
		if s, err = parseDoctor(args); err == nil {
			return doctor(s, stdout, stderr, signals)
		}
	case "version":
		if err = parseNone(name, args); err == nil {
			v := thisSoftware()
			fmt.Fprintf(stdout, "redlock-bench %s\nquorumlock %s\ngo-redis %s\n%s\n", v.Bench, v.Library, v.GoRedis, runtime.Version())
			return exitClean
		}
	case "help":
		topic := name
		if len(args) > 0 && usages[args[0]] != "" {
			topic, args = args[0], args[1:]
		}
		if err = parseNone(name, args); err == nil {
			name, err = topic, flag.ErrHelp
		}
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usages[name])
		return exitClean
	}
	if name != "doctor" && name != "drill" && name != "compare" { // nor is an unknown command repeated: it may be a URL
		name = "run"
	}
	fmt.Fprintf(stderr, "redlock-bench: %v\n\"redlock-bench help %s\" says more.\n", err, name)
	return exitUsage
}

// run makes a run and returns the exit status.
func run(s settings, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	return perform(s.json, stdout, stderr, signals, func(ctx context.Context, text io.Writer) (report, error) {
		return session{settings: s, text: text, progress: newProgress(stderr), makeLocker: newQuorumLocker}.run(ctx)
	}, func(r report, err error, interrupted bool) int { return status(r.Check, err, interrupted) })
}

// perform does what a command is for, until signals end it, writes what came of it
// to where -json says, and returns the exit status that judge gives.
func perform[R any](json string, stdout, stderr io.Writer, signals <-chan os.Signal,
	do func(ctx context.Context, text io.Writer) (R, error), judge func(r R, err error, interrupted bool) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go heed(signals, cancel, os.Exit, stderr)

	var r R
	text, object, err := outputs(json, stdout, stderr)
	if err == nil {
		r, err = do(ctx, text)
	}
	if err == nil && object != nil {
		err = errors.Join(writeJSON(object, r), object.Close())
	}
	if err != nil {
		fmt.Fprintln(stderr, "redlock-bench:", err)
	}
	return judge(r, err, ctx.Err() != nil)
}

// status is the exit status of a run or a drill.
func status(c reportCheck, err error, interrupted bool) int {
	switch {
	case errors.Is(err, redlock.ErrInvalid):
		return exitUsage // a flag's value that only the library knows to be wrong
	case interrupted && (c.Clean || errors.Is(err, context.Canceled)):
		return exitInterrupted
	case err != nil || !c.Clean:
		return exitFailed
	}
	return exitClean
}

// outputs are where the text goes, and where the JSON object does if there is
// to be one.
func outputs(name string, stdout, stderr io.Writer) (text io.Writer, object io.WriteCloser, err error) {
	switch name {
	case "":
		return stdout, nil, nil
	case "-":
		return stderr, kept{stdout}, nil
	}
	f, err := create("json", name)
	return stdout, f, err
}

// create makes the file that a flag names.
func create(option, name string) (*os.File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("flag -%s: %w: want a file that can be written", option, err)
	}
	return f, nil
}

// kept is a writer that others go on using.
type kept struct{ io.Writer }

func (kept) Close() error { return nil }

// heed cancels at the first signal and ends the program at the second. It runs
// until the program ends.
func heed(signals <-chan os.Signal, cancel func(), exit func(int), say io.Writer) {
	<-signals
	fmt.Fprintln(say, "\ninterrupted: everything is released first; once more to end at once")
	cancel()
	<-signals
	exit(exitInterrupted)
}
