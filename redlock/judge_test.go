package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// usual is what nodes are judged by in these tests, where nothing else is said.
var usual = rules{maxTTL: 30 * time.Second, need: 32 * time.Second, nodeTimeout: 50 * time.Millisecond, prefixed: true}

// goodNodes are n nodes with nothing to say about them but that they restart empty.
func goodNodes(n int) (answers []answer) {
	for i := range n {
		answers = append(answers, answer{node: fmt.Sprint("n", i+1), facts: &Facts{
			Server: "redis", Version: "7.0.15", RedisVersion: "7.0.15", RunID: fmt.Sprint("run id of ", i+1), Role: "master", UptimeS: 3600,
			MaxMemoryPolicy: "noeviction",
			Persistence:     Persistence{AppendOnly: "yes", AppendFsync: "always", NoFsyncOnRewrite: "no", Save: "no", LastSave: "ok"},
			RoundTripMS:     0.2,
			Clock:           &ClockFacts{WithinMS: 0.1},
		}})
	}
	return answers
}

// quiet is a set of three nodes about which one thing is to be said, which is
// left out of what a test wants: that they could be called durable.
const quiet = "note : all nodes keep every key through a restart: with Config.DurableNodes on all clients, a restart would cost no quarantine"

func TestFactsAreJudged(t *testing.T) {
	reset := errors.New("connection refused")
	for name, test := range map[string]struct {
		change func(a []answer, r *rules)
		voters string   // by number
		want   []string // findings, the worst first, as severity node: how it begins
	}{
		"nothing": {func([]answer, *rules) {}, "123", nil},

		// Who may vote.
		"no answer": {func(a []answer, _ *rules) { a[1].facts, a[1].err = nil, reset }, "13", []string{
			"problem n2: does not answer: connection refused: see whether it is up",
		}},
		"replica": {func(a []answer, _ *rules) { a[1].facts.Role = "replica" }, "13", []string{
			"problem n2: is a replica: put a master of its own in its place",
		}},
		"replica that keeps nothing": {func(a []answer, _ *rules) {
			a[1].facts.Role, a[1].facts.Persistence = "replica", Persistence{AppendOnly: "no"}
		}, "13", []string{"problem n2: is a replica"}},
		"role not told":   {func(a []answer, _ *rules) { a[1].facts.Role = "" }, "123", nil},
		"cluster of one":  {func(a []answer, _ *rules) { a[1].facts.Cluster, a[1].facts.ClusterNodes = true, 1 }, "123", nil},
		"cluster of more": {func(a []answer, _ *rules) { a[1].facts.Cluster, a[1].facts.ClusterNodes = true, 6 }, "13", []string{"problem n2: is one of 6 nodes of a cluster: put a server of its own"}},
		"cluster of nobody knows": {func(a []answer, _ *rules) { a[1].facts.Cluster = true }, "13", []string{
			"problem n2: is in cluster mode, and does not say whether it is alone there: ACL SETUSER … +cluster|info",
		}},
		"cluster of nobody knows, which is allowed": {func(a []answer, r *rules) { a[1].facts.Cluster, r.unidentified = true, true }, "123", nil},
		"two names, one server": {func(a []answer, _ *rules) { a[2].facts.RunID = a[0].facts.RunID }, "12", []string{
			"problem n3: is the same server as n1: take one of the two off the list",
		}},
		"two names, one server, of which the second was met first": {func(a []answer, _ *rules) {
			a[2].facts.RunID = a[0].facts.RunID
			a[0].met, a[0].standing = true, fmt.Errorf("%w: it is n3", errNoVoter)
			a[2].met = true
		}, "23", []string{
			"problem n1: is the same server as n3: take one of the two off the list",
		}},
		"three names, one server": {func(a []answer, _ *rules) { a[1].facts.RunID, a[2].facts.RunID = a[0].facts.RunID, a[0].facts.RunID }, "1", []string{
			"problem n2: is the same server as n1",
			"problem n3: is the same server as n1",
			"problem : 1 of 3 nodes may vote and 2 are needed: nothing can be locked now",
		}},
		"INFO refused": {func(a []answer, _ *rules) {
			a[1].facts.RunID, a[1].facts.Refused, a[1].facts.RefusedInfo = "", []string{"info"}, "NOPERM no"
		}, "13", []string{
			"problem n2: does not say what it is (INFO: NOPERM no): ACL SETUSER … +info; otherwise a restart that forgot every lock would go unnoticed",
		}},
		"INFO says little": {func(a []answer, _ *rules) { a[1].facts.RunID = "" }, "13", []string{
			"problem n2: does not say what it is (INFO names no run_id, as behind a proxy): ACL",
		}},
		"INFO refused, which is allowed": {func(a []answer, r *rules) {
			a[1].facts.RunID, a[1].facts.Refused, a[1].facts.RefusedInfo, r.unidentified = "", []string{"info"}, "NOPERM no", true
		}, "123", []string{
			"warning n2: does not say what it is, and votes all the same, as Config.AllowUnidentified says: a restart",
		}},
		"just restarted": {func(a []answer, _ *rules) { a[1].facts.UptimeS = 31 }, "13", []string{
			"problem n2: is quarantined for 1s more: restarted 31s ago, MaxTTL 30s: wait; a lock that it may have forgotten",
		}},
		"its clock was put back":          {func(a []answer, _ *rules) { a[1].facts.UptimeS = -5 }, "13", []string{"problem n2: is quarantined for 32s more: "}},
		"restarted just long enough ago":  {func(a []answer, _ *rules) { a[1].facts.UptimeS = 32 }, "123", nil},
		"just restarted, but it is known": {func(a []answer, _ *rules) { a[1].facts.UptimeS, a[1].met = 1, true }, "123", nil},
		"seen to restart": {func(a []answer, _ *rules) {
			a[1].met, a[1].standing = true, fmt.Errorf("wrapped: %w", &QuarantineError{For: 2500 * time.Millisecond, Why: "had its data replaced 29s ago", MaxTTL: 30 * time.Second})
		}, "13", []string{
			"problem n2: is quarantined for 3s more: had its data replaced 29s ago, MaxTTL 30s: wait",
		}},
		"restarted, and only the audit has seen it": {func(a []answer, _ *rules) { a[1].met, a[1].run = true, "another run id" }, "13", []string{
			"problem n2: is quarantined for 32s more: restarted since it was last asked, MaxTTL 30s",
		}},
		"restarted, and only the audit has seen it, with its keys": {func(a []answer, r *rules) {
			a[1].met, a[1].run, r.durable = true, "another run id", true
		}, "123", nil},
		"answers, but not the Locker": {func(a []answer, _ *rules) { a[1].met, a[1].standing = true, errors.New("not connected: reset") }, "13", []string{
			"problem n2: is not connected: reset: ask again in a moment",
		}},
		"answers, but not in time": {func(a []answer, _ *rules) { a[1].met, a[1].standing = true, errStalled }, "13", []string{
			"problem n2: has not answered for a while, and is sent nothing more until it does: ask again in a moment",
		}},
		"loading": {func(a []answer, _ *rules) { a[1].facts.Loading = true }, "13", []string{"problem n2: is loading its data: wait"}},
		"read-only": {func(a []answer, _ *rules) { a[1].facts.RefusedWrites = "MISCONF no space" }, "13", []string{
			"problem n2: writes nothing (MISCONF no space): see its log",
		}},
		"no quorum": {func(a []answer, _ *rules) { a[1].facts.Role, a[2].facts, a[2].err = "replica", nil, reset }, "1", []string{
			"problem n2: is a replica",
			"problem n3: does not answer",
			"problem : 1 of 3 nodes may vote and 2 are needed: nothing can be locked now",
		}},

		// Permissions.
		"may not grant": {func(a []answer, _ *rules) { a[1].facts.Refused = []string{"del", "set"} }, "13", []string{
			"problem n2: does not let its user run set, del: ACL SETUSER … +set +del",
		}},
		"may not release": {func(a []answer, _ *rules) { a[1].facts.Refused = []string{"mget"} }, "123", []string{
			"problem n2: does not let its user run mget, which the lock needs: ACL SETUSER … +mget",
		}},
		"may not be asked whether it is there": {func(a []answer, _ *rules) { a[1].facts.Refused = []string{"ping"} }, "123", nil},
		"may not be asked whether it is there, nor what it is": {func(a []answer, r *rules) {
			a[1].facts.RunID, a[1].facts.Refused, r.unidentified = "", []string{"info", "ping"}, true
		}, "123", []string{
			"problem n2: does not let its user run ping, which the lock needs: ACL SETUSER … +ping",
			"warning n2: does not say what it is, and votes all the same",
		}},
		"may not do without fences what only fences need": {func(a []answer, _ *rules) { a[1].facts.Refused = []string{"exists", "time"} }, "123", []string{
			"note n2: does not let its user run time, and without it its clock is not compared: ACL SETUSER … +time",
		}},
		"may not fence": {func(a []answer, r *rules) { a[1].facts.Refused, r.fenced = []string{"exists", "time"}, true }, "13", []string{
			"problem n2: does not let its user run exists, time: ACL SETUSER … +exists +time",
		}},
		"may not extend fenced locks": {func(a []answer, r *rules) { a[1].facts.Refused, r.fenced = []string{"pexpire"}, true }, "123", []string{
			"problem n2: does not let its user run pexpire, which the lock needs",
		}},
		"may not kill": {func(a []answer, _ *rules) { a[1].facts.Refused = []string{"client|id", "client|kill"} }, "123", []string{
			"note n2: does not let its user run client|id, and without it connections that end cost more traffic: ACL SETUSER … +client|id",
			"note n2: does not let its user run client|kill, and without it",
		}},
		"may not touch the keys": {func(a []answer, _ *rules) { a[1].facts.RefusedKey = "NOPERM key" }, "13", []string{
			"problem n2: does not let its user touch the keys of the lock (NOPERM key): permit all keys",
		}},
		"may not touch some keys": {func(a []answer, r *rules) { a[1].facts.RefusedKey, r.prefixed = "NOPERM key", false }, "123", []string{
			"warning n2: lets its user touch only some keys (NOPERM key): give all locks a Config.KeyPrefix",
		}},

		// What they keep.
		"evicting": {func(a []answer, _ *rules) { a[1].facts.MaxMemory, a[1].facts.MaxMemoryPolicy = 100<<20, "volatile-ttl" }, "123", []string{
			"warning n2: forgets keys when its memory is full (maxmemory 100 MiB, maxmemory-policy volatile-ttl), and a lock",
		}},
		"a policy without a limit":   {func(a []answer, _ *rules) { a[1].facts.MaxMemoryPolicy = "allkeys-lru" }, "123", nil},
		"a limit without a policy":   {func(a []answer, _ *rules) { a[1].facts.MaxMemory = 1 << 30 }, "123", nil},
		"memory only":                {func(a []answer, _ *rules) { a[1].facts.Persistence = Persistence{AppendOnly: "no"} }, "123", []string{"note n2: may forget locks in a restart (appendonly is no), and so has no vote for 32s after one"}},
		"synced every second":        {func(a []answer, _ *rules) { a[1].facts.Persistence.AppendFsync = "everysec" }, "123", []string{"note n2: may forget locks in a restart (appendfsync is everysec)"}},
		"persistence nobody knows":   {func(a []answer, _ *rules) { a[1].facts.Persistence.AppendFsync = "" }, "123", []string{}},
		"durable, as was said":       {func(_ []answer, r *rules) { r.durable = true }, "123", []string{}},
		"durable: just restarted":    {func(a []answer, r *rules) { a[1].facts.UptimeS, r.durable = 1, true }, "123", []string{}},
		"durable: memory only":       {func(a []answer, r *rules) { a[1].facts.Persistence, r.durable = Persistence{AppendOnly: "no"}, true }, "123", []string{"problem n2: forgets locks in a restart (appendonly is no), and Config.DurableNodes says that it does not: set"}},
		"durable: synced every now":  {func(a []answer, r *rules) { a[1].facts.Persistence.AppendFsync, r.durable = "everysec", true }, "123", []string{"problem n2: forgets locks in a restart (appendfsync is everysec)"}},
		"durable: not while copying": {func(a []answer, r *rules) { a[1].facts.Persistence.NoFsyncOnRewrite, r.durable = "yes", true }, "123", []string{"problem n2: forgets locks in a restart (no-appendfsync-on-rewrite is yes)"}},
		"durable: nobody knows":      {func(a []answer, r *rules) { a[1].facts.Persistence, r.durable = Persistence{AppendOnly: "yes"}, true }, "123", []string{"warning n2: may forget locks in a restart (it does not tell its configuration), and Config.DurableNodes says that it does not: ACL SETUSER … +config|get, and"}},
		"disk full": {func(a []answer, _ *rules) {
			p := &a[1].facts.Persistence
			p.LastSave, p.LastAppend, p.LastRewrite = "err", "err", "err"
		}, "123", []string{
			"warning n2: could not finish its last snapshot: see its log",
			"warning n2: could not finish its last write to its append-only file",
			"warning n2: could not finish its last rewrite of its append-only file",
		}},

		// Versions, times.
		"old":        {func(a []answer, _ *rules) { a[1].facts.Version, a[1].facts.RedisVersion = "6.0.16", "6.0.16" }, "123", []string{"problem n2: runs redis 6.0.16, which this lock is not made for: upgrade it"}},
		"very old":   {func(a []answer, _ *rules) { a[1].facts.Version, a[1].facts.RedisVersion = "5.0.7", "5.0.7" }, "123", []string{"problem n2: runs redis 5.0.7, which"}},
		"rather old": {func(a []answer, _ *rules) { a[1].facts.Version, a[1].facts.RedisVersion = "6.2.0", "6.2.0" }, "123", []string{"note n2: runs redis 6.2.0, which does not say who holds a key"}},
		"not Redis": {func(a []answer, _ *rules) {
			a[1].facts.Server, a[1].facts.Version, a[1].facts.RedisVersion = "valkey", "9.1.2", "7.2.4"
		}, "123", nil},
		"no version":       {func(a []answer, _ *rules) { a[1].facts.RedisVersion = "" }, "123", nil},
		"far away":         {func(a []answer, _ *rules) { a[1].facts.RoundTripMS = 25.1 }, "123", []string{"warning n2: takes 25.1ms at best to answer, more than half of Config.NodeTimeout, 50ms, so that"}},
		"just near enough": {func(a []answer, _ *rules) { a[1].facts.RoundTripMS = 25 }, "123", nil},
		"clock ahead":      {func(a []answer, _ *rules) { a[1].facts.Clock.AheadMS = 1200 }, "123", []string{"warning n2: has a clock that is 1.2s ahead of the others: set it right (ntpd, chrony); locks end early"}},
		"clock behind, with fences": {func(a []answer, r *rules) { a[1].facts.Clock.AheadMS, r.fenced = -1200, true }, "123", []string{
			"warning n2: has a clock that is 1.2s behind the others: set it right (ntpd, chrony); after the loss",
		}},
		"clock perhaps ahead": {func(a []answer, _ *rules) { a[1].facts.Clock = &ClockFacts{AheadMS: 600, WithinMS: 100} }, "123", nil},
		"clock surely ahead":  {func(a []answer, _ *rules) { a[1].facts.Clock = &ClockFacts{AheadMS: 602, WithinMS: 101} }, "123", []string{"warning n2: has a clock that is 602ms ahead of the others"}},
		"clock nobody knows":  {func(a []answer, _ *rules) { a[1].facts.Clock = nil }, "123", nil},
		"this machine's clock": {func(a []answer, _ *rules) {
			for _, a := range a {
				a.facts.Clock.AheadMS = 9000
			}
		}, "123", []string{"warning : this machine's clock is 9s behind those of the nodes: set it right"}},
		"nobody tells the time": {func(a []answer, _ *rules) {
			for _, a := range a {
				a.facts.Clock = nil
			}
		}, "123", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, r := goodNodes(3), usual
			test.change(a, &r)
			got := judge(a, r)
			wantFindings(t, got, test.want)
			var voters string
			for i, n := range got.Nodes {
				if n.Votes {
					voters += fmt.Sprint(i + 1)
				}
				if n.Votes != (n.WhyNot == "") || n.Votes && n.QuarantinedS != 0 {
					t.Errorf("%+v", n)
				}
			}
			if voters != test.voters || got.Voters != len(voters) || got.Quorum != 2 || got.QuorumMayVote != (len(voters) > 1) {
				t.Errorf("nodes %s vote, want %s; %+v", voters, test.voters, got)
			}
		})
	}
}

// wantFindings compares findings by how they begin, without the quiet one.
func wantFindings(t *testing.T, r *Report, want []string) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		if text := fmt.Sprintf("%s %s: %s", f.Severity, f.Node, f.Text); text != quiet {
			got = append(got, text)
		}
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
