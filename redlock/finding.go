package redlock

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// largestOffset is how far a clock may be off before it is worth a word. Half of
// what a node allows a fence to be ahead of its own clock.
const largestOffset = 500 * time.Millisecond

// findings are what is to be said of a node that answers, besides what keeps it
// from voting.
func (r rules) findings(n NodeReport, add func(s Severity, format string, args ...any)) {
	f := n.Facts
	r.versions(f, add)
	r.permissions(f, add)
	if f.MaxMemory > 0 && f.MaxMemoryPolicy != "" && f.MaxMemoryPolicy != "noeviction" {
		add(Warning, "forgets keys when its memory is full (maxmemory %s, maxmemory-policy %s), and a lock that is forgotten goes to a second holder: "+
			"CONFIG SET maxmemory-policy noeviction", inBytes(f.MaxMemory), f.MaxMemoryPolicy)
	}
	if n.Votes || n.QuarantinedS > 0 { // of others nothing is relied on
		r.persistence(f, add)
	}
	if rtt := millis(f.RoundTripMS); rtt > r.nodeTimeout/2 {
		add(Warning, "takes %v at best to answer, more than half of Config.NodeTimeout, %v, so that many votes will come too late: "+
			"raise it, up to a quarter of the TTL, or bring the node nearer", rtt, r.nodeTimeout)
	}
	if c := n.ClockOffset; c != nil {
		if off := c.beyond(); off > largestOffset {
			add(Warning, "has a clock that is %s the others: %s", c.words(), r.aboutClocks())
		}
	}
}

func (r rules) versions(f *Facts, add func(Severity, string, ...any)) {
	major, minor, ok := version(f.RedisVersion)
	switch name := f.Server + " " + f.Version; {
	case !ok:
	case major < 6 || major == 6 && minor < 2:
		add(Problem, "runs %s, which this lock is not made for: upgrade it to Redis 7 or Valkey, at least to Redis 6.2", name)
	case major < 7:
		add(Note, "runs %s, which does not say who holds a key: with Redis 7 or Valkey, errors would", name)
	}
}

// version reads the first two numbers of a version.
func version(text string) (major, minor int, ok bool) {
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return major, minor, err1 == nil && err2 == nil
}

// missing are the commands that the lock needs and the node refuses.
func (r rules) missing(f *Facts) []string {
	needed := []string{"set", "get", "mget", "del", "pttl", "pexpire", "eval", "evalsha"}
	if f.RunID == "" {
		needed = append(needed, "ping") // where INFO does not say whether it is there
	}
	if r.fenced {
		needed = append(needed, "exists", "time")
	}
	return slices.DeleteFunc(needed, func(c string) bool { return !slices.Contains(f.Refused, c) })
}

// votesBy reports whether a node that refuses command cannot grant. The others
// are for what comes after.
func (r rules) votesBy(command string) bool {
	fenced := []string{"mget", "eval", "evalsha", "exists", "time"}
	return command == "set" || r.fenced && slices.Contains(fenced, command)
}

func (r rules) permissions(f *Facts, add func(Severity, string, ...any)) {
	if missing := r.missing(f); len(missing) > 0 && !slices.ContainsFunc(missing, r.votesBy) {
		add(Problem, "does not let its user run %s, which the lock needs: %s", strings.Join(missing, ", "), permit(missing...))
	}
	if f.RunID == "" && r.unidentified {
		add(Warning, "does not say what it is, and votes all the same, as Config.AllowUnidentified says: "+
			"a restart, a replica or a second name for one server goes unnoticed. %s", permit("info"))
	}
	if f.RefusedKey != "" && !r.prefixed {
		add(Warning, "lets its user touch only some keys (%s): give all locks a Config.KeyPrefix, permit what begins with it, and audit again", f.RefusedKey)
	}
	for _, o := range []struct{ command, without string }{
		{"client|id", "connections that end cost more traffic"},
		{"client|kill", "connections that end cost more traffic"},
		{"time", "its clock is not compared"},
	} {
		if slices.Contains(f.Refused, o.command) && !(o.command == "time" && r.fenced) {
			add(Note, "does not let its user run %s, and without it %s: %s", o.command, o.without, permit(o.command))
		}
	}
}

// permit says how a user is allowed to run commands.
func permit(commands ...string) string {
	return "ACL SETUSER … +" + strings.Join(commands, " +")
}

// durable says whether a node keeps every key that it has granted through a
// restart: yes, no or unknown, and what speaks against it.
func (p Persistence) durable() (verdict, why string) {
	switch {
	case p.AppendOnly == "no":
		return "no", "appendonly is no"
	case p.AppendFsync != "" && p.AppendFsync != "always":
		return "no", "appendfsync is " + p.AppendFsync
	case p.NoFsyncOnRewrite == "yes":
		return "no", "no-appendfsync-on-rewrite is yes"
	case p.AppendOnly == "" || p.AppendFsync == "" || p.NoFsyncOnRewrite == "":
		return "unknown", "it does not tell its configuration"
	}
	return "yes", ""
}

func (r rules) persistence(f *Facts, add func(Severity, string, ...any)) {
	p := f.Persistence
	verdict, why := p.durable()
	switch {
	case r.durable && verdict == "no":
		add(Problem, "forgets locks in a restart (%s), and Config.DurableNodes says that it does not: set appendonly yes, appendfsync always and "+
			"no-appendfsync-on-rewrite no, or take DurableNodes back", why)
	case r.durable && verdict == "unknown":
		add(Warning, "may forget locks in a restart (%s), and Config.DurableNodes says that it does not: %s, and audit again", why, permit("config|get"))
	case !r.durable && verdict == "no":
		add(Note, "may forget locks in a restart (%s), and so has no vote for %v after one: fine, as long as the others make a quorum", why, r.need)
	}
	for _, step := range []struct{ what, went string }{
		{"snapshot", p.LastSave}, {"write to its append-only file", p.LastAppend}, {"rewrite of its append-only file", p.LastRewrite},
	} {
		if step.went == "err" {
			add(Warning, "could not finish its last %s: see its log, and whether its disk is full", step.what)
		}
	}
}

// together adds what is to be said of the nodes as a set, and of this machine.
func (r rules) together(report *Report, clock ClockFacts) {
	add := func(s Severity, format string, args ...any) {
		report.Findings = append(report.Findings, Finding{Severity: s, Text: fmt.Sprintf(format, args...)})
	}
	n := len(report.Nodes)
	if !report.QuorumMayVote {
		add(Problem, "%d of %d nodes may vote and %d are needed: nothing can be locked now", report.Voters, n, report.Quorum)
	}
	switch {
	case n == 1:
		add(Note, "one node is a lock on that node alone, and there is none when it is down: 3 bear the loss of one, 5 of two")
	case n == 2:
		add(Note, "with two nodes, both are needed: a third would bear the loss of any one")
	case n%2 == 0:
		add(Note, "%d nodes bear the loss of no more than %d do: leave one out, or add one", n, n-1)
	}
	if off := clock.beyond(); off > largestOffset && n > 1 {
		add(Warning, "this machine's clock is %s those of the nodes: %s", clock.words(), r.aboutClocks())
	}
	durable := func(n NodeReport) bool { return n.Durable == "yes" }
	if !r.durable && !slices.ContainsFunc(report.Nodes, func(n NodeReport) bool { return !durable(n) }) {
		add(Note, "all nodes keep every key through a restart: with Config.DurableNodes on all clients, a restart would cost no quarantine")
	}
}

// beyond is how far a clock is off for certain.
func (c ClockFacts) beyond() time.Duration {
	return millis(math.Abs(c.AheadMS) - c.WithinMS)
}

// words are how a clock stands to another: "1.2s ahead of".
func (c ClockFacts) words() string {
	where := "ahead of"
	if c.AheadMS < 0 {
		where = "behind"
	}
	return fmt.Sprintf("%v %s", millis(math.Abs(c.AheadMS)).Round(time.Millisecond), where)
}

// aboutClocks is what follows from a clock that is off.
func (r rules) aboutClocks() string {
	if r.fenced {
		return "set it right (ntpd, chrony); after the loss of a node's data, only clocks keep fences rising"
	}
	return "set it right (ntpd, chrony); locks end early when a node's clock is put forward"
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// inBytes is a size for people.
func inBytes(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
