package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// durably are the arguments of a server that keeps every key through a restart.
var durably = []string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"}

// forgetful is a Config for servers that forget everything in a restart, as nobody
// has said that they do not.
func forgetful() Config {
	cfg := patient()
	cfg.DurableNodes = false
	return cfg
}

// wantFound checks that all of this was found about a node.
func wantFound(t *testing.T, r *Report, node string, want ...string) {
	t.Helper()
	all := found(r, node)
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("not found: %s in\n%s", w, all)
		}
	}
}

// One server has one vote, whatever number of names and sockets it has.
func TestAuditFindsOneServerUnderTwoAddresses(t *testing.T) {
	t.Parallel()
	twice, once := startServer(t, redisproc.Options{UnixSocket: true}), startServer(t, redisproc.Options{})
	l := onServers(t, []Node{twice.node(), Redis(&redis.Options{Addr: twice.Socket()}), once.node()}, patient())
	r := audit(t, l)
	var twins []string
	for i, n := range r.Nodes[:2] {
		other := r.Nodes[1-i].Node
		if n.WhyNot == "is the same server as "+other {
			twins = append(twins, n.Node)
			wantFound(t, r, n.Node, "problem: is the same server as "+other+": take one of the two off the list of every client")
		}
		if n.Run == "" || n.Run != r.Nodes[0].Run {
			t.Errorf("%s is run %q", n.Node, n.Run)
		}
	}
	if len(twins) != 1 || r.Nodes[2].Run == r.Nodes[0].Run {
		t.Errorf("%+v", r)
	}
}

// Of the permissions that the lock needs each is missed, by its name, and of a
// user who has them all none is.
func TestAuditFindsMissingPermissions(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	extra := []string{ping, "+exists", "+time", "+config|get", "+cluster|info"}
	all := slices.Concat(needed, useful, extra)
	facts := func(commands []string) *Facts {
		t.Helper()
		s.permit(t, commands...)
		return factsOf(t, s)
	}
	if f := facts(all); f.Refused != nil || f.RefusedInfo+f.RefusedKey+f.RefusedWrites != "" {
		t.Errorf("with all permissions: %+v", f)
	}
	for _, command := range all {
		if command == "+cluster|info" {
			continue // the server is in none
		}
		without := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == command })
		if f := facts(without); !slices.Equal(f.Refused, []string{command[1:]}) {
			t.Errorf("without %s: %q are refused", command, f.Refused)
		}
	}
	if keys := s.keys(t); len(keys) != 0 {
		t.Errorf("keys are left: %q", keys)
	}
}

// What is missed is said in the report, with what to do about it.
func TestAuditSaysWhatToPermit(t *testing.T) {
	t.Parallel()
	servers, nodes := startServers(t, 3)
	servers[0].permit(t, "+set", "+get", "+info", "+client|id", "+client|kill", "+time")
	servers[1].permit(t, slices.Concat(needed, useful)...)
	servers[1].do(t, "acl", "setuser", "locker", "resetkeys", "~other:*")
	for i, s := range servers {
		nodes[i] = s.node()
	}
	cfg := patient()
	cfg.KeyPrefix = "lock:"
	r := audit(t, onServers(t, nodes, cfg))
	wantFound(t, r, r.Nodes[0].Node,
		"problem: does not let its user run mget, del, pttl, pexpire, eval, evalsha, which the lock needs: ACL SETUSER … +mget +del +pttl +pexpire +eval +evalsha")
	if f := r.Nodes[1].Facts; f == nil || f.RefusedKey == "" || slices.Contains(f.Refused, "set") {
		t.Errorf("%+v", f)
	}
	if f := r.Nodes[2].Facts; f == nil || f.RefusedKey != "" || f.Refused != nil {
		t.Errorf("%+v", f)
	}
}

func TestAuditSaysWhatServersKeep(t *testing.T) {
	t.Parallel()
	durable := startServer(t, redisproc.Options{Args: durably})
	memory := startServer(t, redisproc.Options{})
	evicting := startServer(t, redisproc.Options{Args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--save", "3600", "1"}})
	r := audit(t, onServers(t, []Node{durable.node(), memory.node(), evicting.node()}, forgetful()))
	for i, want := range []string{"yes", "no", "no"} {
		n := r.Nodes[i]
		if n.Durable != want || n.Facts.Version == "" || n.Facts.UptimeS < 0 || n.Facts.Role != "master" || n.Facts.RoundTripMS <= 0 || n.ClockOffset == nil {
			t.Errorf("%+v: %+v, want durable %s", n, n.Facts, want)
		}
	}
	want := Persistence{AppendOnly: "yes", AppendFsync: "always", NoFsyncOnRewrite: "no", Save: "no", LastSave: "ok", LastAppend: "ok", LastRewrite: "ok"}
	if got := r.Nodes[0].Facts.Persistence; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r.Nodes[2].Facts; got.Persistence.Save != "3600 1" || got.MaxMemory != 100<<20 {
		t.Errorf("%+v", got)
	}
	wantFound(t, r, r.Nodes[1].Node, "note: may forget locks in a restart (appendonly is no)")
	said := audit(t, onServers(t, []Node{durable.node(), memory.node(), evicting.node()}, patient()))
	wantFound(t, said, r.Nodes[1].Node, "problem: forgets locks in a restart (appendonly is no), and Config.DurableNodes says that it does not")
	if got := found(said, r.Nodes[0].Node); got != "" || said.Voters != 3 || r.Voters != 0 {
		t.Errorf("%s\n%+v\n%+v", got, said, r)
	}
	wantFound(t, r, r.Nodes[2].Node, "warning: forgets keys when its memory is full (maxmemory 100 MiB, maxmemory-policy allkeys-lru)")
}

// A dead node, a replica and a server that has just started are told apart.
func TestAuditTellsNodesApart(t *testing.T) {
	t.Parallel()
	servers, nodes := startServers(t, 4)
	_, port, _ := strings.Cut(servers[0].Addr(), ":")
	servers[1].do(t, "replicaof", "127.0.0.1", port)
	if err := servers[2].Kill(); err != nil {
		t.Fatal(err)
	}
	r := audit(t, onServers(t, nodes, forgetful()))
	wantFound(t, r, r.Nodes[1].Node, "problem: is a replica")
	wantFound(t, r, r.Nodes[2].Node, "problem: does not answer", "refused")
	wantFound(t, r, r.Nodes[3].Node, "problem: is quarantined for ", "restarted ", ", MaxTTL 30s: wait")
	wantFound(t, r, "", "problem: 0 of 4 nodes may vote and 3 are needed")
	if f := r.Nodes[1].Facts; f == nil || !strings.HasPrefix(f.RefusedWrites, "READONLY") {
		t.Errorf("%+v", f)
	}
	if n := r.Nodes[3]; n.QuarantinedS <= 0 || n.QuarantinedS > 32 {
		t.Errorf("%+v", n)
	}
}

// A member of a cluster is asked how many there are.
//
// field-reports: 81
func TestAuditOfAClusterMember(t *testing.T) {
	t.Parallel()
	alone, two := startClusterMember(t), startClusterMember(t)
	f := factsOf(t, alone)
	if !f.Cluster || f.ClusterNodes != 1 || f.Refused != nil {
		t.Errorf("alone: %+v", f)
	}
	two.do(t, "cluster", "reset")
	_, port, _ := strings.Cut(alone.Addr(), ":")
	bus, err := alone.admin.ConfigGet(context.Background(), "cluster-port").Result()
	if err != nil {
		t.Fatal(err)
	}
	two.do(t, "cluster", "meet", "127.0.0.1", port, bus["cluster-port"])
	eventually(t, "cluster nodes", 2, func() int { return factsOf(t, alone).ClusterNodes })
}

// factsOf are the facts about a server.
func factsOf(t *testing.T, s *realServer) *Facts {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	c, err := s.node().Connect(ctx, hang)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Facts(ctx, "nobody's", patient().Clock)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A server that is stopped while it is asked does not keep the caller.
func TestAuditOfAStoppedServerEnds(t *testing.T) {
	t.Parallel()
	servers, nodes := startServers(t, 3)
	if err := servers[1].Stop(); err != nil {
		t.Fatal(err)
	}
	l := onServers(t, nodes, patient())
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if r, err := l.Audit(ctx); r != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", r, err)
	}
	r := audit(t, l)
	wantFound(t, r, r.Nodes[1].Node, "problem: does not answer")
	if r.Nodes[0].Facts == nil || r.Nodes[2].Facts == nil {
		t.Errorf("%+v", r)
	}
	if err := servers[1].Cont(); err != nil {
		t.Fatal(err)
	}
}
