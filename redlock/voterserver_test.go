package redlock

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// brief is a Config whose quarantine takes 3 s.
func brief() Config {
	return Config{TTL: time.Second, NodeTimeout: 250 * time.Millisecond, MaxTTL: time.Second, Clock: clock.System{}}
}

// untilGranted tries for key until it is granted, and returns what node i said
// before, as far as it said why.
func untilGranted(t testing.TB, l *Locker, key string, i int) (lease *Lease, before []Vote) {
	t.Helper()
	for deadline := time.Now().Add(hang); ; time.Sleep(10 * time.Millisecond) {
		lease, err := l.TryAcquire(context.Background(), key)
		var failure *AttemptError
		switch {
		case err == nil:
			return lease, before
		case time.Now().After(deadline):
			t.Fatal(err)
		case errors.As(err, &failure) && len(failure.Votes) > 0 && failure.Votes[i].Err != nil:
			before = append(before, failure.Votes[i])
		}
	}
}

// afterQuarantine checks that a lease which needs node i was acquired in a round
// that began when the node was out of quarantine, and what that was for.
func afterQuarantine(t testing.TB, lease *Lease, i int, what string) {
	t.Helper()
	lane := lease.locker.lanes[i]
	lane.mu.Lock()
	began, voter := lane.at(lease.start), lane.voter
	lane.mu.Unlock()
	if began < voter.until {
		t.Errorf("the round began %v before the node was out of quarantine", voter.until-began)
	}
	if voter.until-voter.since != 3*time.Second || voter.what != what {
		t.Errorf("it was in quarantine for %v because it %s: want 3s, and that it %s", voter.until-voter.since, voter.what, what)
	}
	if err := lease.Release(context.Background()); err != nil && !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// saidSo counts the votes that say that they are in quarantine, and why.
func saidSo(votes []Vote, what string) (count int) {
	for _, v := range votes {
		var why *QuarantineError
		if errors.As(v.Err, &why) && strings.HasPrefix(why.Why, what) && v.Quarantined > 0 {
			count++
		}
	}
	return count
}

// refuses tries for key until node i is refused a vote for this reason.
func refuses(t testing.TB, l *Locker, key string, i int, why string) {
	t.Helper()
	eventually(t, why, true, func() bool {
		lease, err := l.TryAcquire(context.Background(), key)
		if err == nil {
			lease.Release(context.Background())
			return false
		}
		var failure *AttemptError
		return errors.As(err, &failure) && len(failure.Votes) > 0 && failure.Votes[i].Err != nil && strings.Contains(failure.Votes[i].Err.Error(), why)
	})
}

// A server that is killed and comes back empty does not vote before the longest
// lock that it may have forgotten is over, nor does one that has just started.
func TestRestartedServerIsInQuarantine(t *testing.T) {
	t.Parallel()
	servers, nodes := startServers(t, 2) // both are needed
	l := onServers(t, nodes, brief())
	lease, before := untilGranted(t, l, "k", 0)
	if saidSo(before, "restarted") == 0 {
		t.Errorf("it has just started, and did not say so: %v", before)
	}
	lease.Release(context.Background())

	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	killed := l.clock.Now()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := servers[0].Restart(ctx, redisproc.Wipe); err != nil {
		t.Fatal(err)
	}
	fresh := onServers(t, nodes, brief())
	lease, before = untilGranted(t, l, "k", 0)
	afterQuarantine(t, lease, 0, "restarted")
	if saidSo(before, "restarted") == 0 {
		t.Errorf("it did not say so: %v", before)
	}
	lane := l.lanes[0]
	lane.mu.Lock()
	if early := lane.at(killed) - lane.voter.since; early > 0 {
		t.Errorf("the quarantine counts from %v before the end of the process", early)
	}
	lane.mu.Unlock()
	lease, _ = untilGranted(t, fresh, "k", 0)
	afterQuarantine(t, lease, 0, "restarted")
}

// A server that is made a replica loses its vote, and when it is made a master
// again its data are others', whatever it keeps through a restart.
//
// field-reports: 27
func TestReplicaIsNoVoterAndAFormerOneIsInQuarantine(t *testing.T) {
	t.Parallel()
	l, master, s := lockerAndMaster(t)
	host, port, _ := net.SplitHostPort(master.Addr())
	s.do(t, "replicaof", host, port)
	refuses(t, l, "k", 0, "it is a replica, and only masters vote")
	fresh := onServers(t, []Node{s.node()}, l.cfg) // it has not seen it as a master
	refuses(t, fresh, "k", 0, "it is a replica, and only masters vote")
	s.do(t, "replicaof", "no", "one")
	refuses(t, l, "k", 0, "became a voter")
	for _, l := range []*Locker{l, fresh} {
		lease, _ := untilGranted(t, l, "k", 0)
		afterQuarantine(t, lease, 0, "became a voter")
	}
}

// A server may have been another's replica while nobody looked: its data are not
// those that it had. That another has copied it, for a backup say, takes nothing
// from it.
func TestServerWhoseDataWereReplacedIsInQuarantine(t *testing.T) {
	t.Parallel()
	l, master, s := lockerAndMaster(t)
	copies := func(replica, master *realServer) {
		t.Helper()
		host, port, _ := net.SplitHostPort(master.Addr())
		replica.do(t, "replicaof", host, port)
		eventually(t, "it has the other's data", true, func() bool {
			info, _ := replica.do(t, "info", "replication").(string)
			return strings.Contains(info, "master_link_status:up")
		})
		replica.do(t, "replicaof", "no", "one")
		s.do(t, "client", "kill", "type", "normal")
	}
	copies(master, s)
	lease, before := untilGranted(t, l, "k", 0)
	if saidSo(before, "") > 0 {
		t.Errorf("it was copied, and is in quarantine: %v", before)
	}
	lease.Release(context.Background())

	copies(s, master)
	lease, before = untilGranted(t, l, "k", 0)
	afterQuarantine(t, lease, 0, "had its data replaced")
	if saidSo(before, "had its data replaced") == 0 {
		t.Errorf("it did not say so: %v", before)
	}
}

// lockerAndMaster are a Locker on one durable server, which it has locked on, and
// another server that this one may copy.
func lockerAndMaster(t *testing.T) (l *Locker, master, s *realServer) {
	servers, nodes := startServers(t, 2)
	for _, s := range servers {
		s.do(t, "config", "set", "repl-diskless-sync-delay", 0)
	}
	cfg := brief()
	cfg.DurableNodes = true
	l = onServers(t, nodes[1:], cfg)
	lease, _ := untilGranted(t, l, "k", 0)
	lease.Release(context.Background())
	return l, servers[0], servers[1]
}

// One server has one vote, whatever leads to it.
//
// field-reports: 27
func TestTwoAddressesOfOneRealServerAreOneVote(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{UnixSocket: true})
	other := startServer(t, redisproc.Options{})
	_, port, _ := net.SplitHostPort(s.Addr())
	second := map[string]string{"a Unix socket": s.Socket(), "another name": net.JoinHostPort("localhost", port)}
	for name, addr := range second {
		l := onServers(t, []Node{s.node(), Redis(&redis.Options{Addr: addr}), other.node()}, patient())
		lease, _ := untilGranted(t, l, name, 0)
		if s.do(t, "get", name) != string(lease.Token()) || other.do(t, "get", name) != string(lease.Token()) {
			t.Errorf("%s: the lease does not rest on both servers", name)
		}
		if err := lease.Release(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, addr := range second {
		l := onServers(t, []Node{s.node(), Redis(&redis.Options{Addr: addr}), other.node()}, patient())
		var failure *AttemptError
		for range 20 {
			lease, err := l.TryAcquire(context.Background(), name)
			if !errors.Is(err, ErrNoQuorum) || !errors.As(err, &failure) {
				t.Fatalf("%s: one server of two: %v, %v", name, lease, err)
			}
		}
		if text := failure.Error(); !strings.Contains(text, "not a voter: it is the same server as") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
