package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/respfake"
)

// audit is an Audit that must succeed.
func audit(t testing.TB, l *Locker) *Report {
	t.Helper()
	r, err := l.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found are the findings about a node, or about all for "", as one text.
func found(r *Report, node string) string {
	var all []string
	for _, f := range r.Findings {
		if f.Node == node {
			all = append(all, fmt.Sprintf("%s: %s", f.Severity, f.Text))
		}
	}
	return strings.Join(all, "\n")
}

func TestAuditOfGoodNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		lease := acquire(t, l, "k")
		r := audit(t, l)
		if r.Voters != 3 || r.Quorum != 2 || !r.QuorumMayVote || len(r.Findings) != 0 {
			t.Errorf("%+v", r)
		}
		for i, n := range r.Nodes {
			if n.Node != mem[i].name || !n.Votes || n.Facts == nil || n.Run != mem[i].name+"-run0" {
				t.Errorf("%+v", n)
			}
		}
		synctest.Wait()
		for _, n := range mem {
			if n.open() != 1 {
				t.Errorf("%s has %d connections after the audit", n, n.open())
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that says nothing costs its dial timeout, whatever it is that it does
// not answer, and nobody else's answer.
func TestAuditWaitsForADeadNodeNoLongerThanForItsConnection(t *testing.T) {
	for name, test := range map[string]struct {
		break_ func(s *respfake.Server)
		why    string
		within time.Duration
	}{
		"refused":          {func(s *respfake.Server) { s.Refuse(true) }, "refused", 0},
		"black hole":       {func(s *respfake.Server) { s.Blackhole(true) }, "no connection within 1s", time.Second},
		"hung":             {func(s *respfake.Server) { s.Hang() }, "does not answer: ", time.Second},
		"hung on CONFIG":   {func(s *respfake.Server) { s.Mute(1, "config") }, "nothing within 1s", time.Second},
		"hung on TIME":     {func(s *respfake.Server) { s.Mute(1, "time") }, "nothing within 1s", time.Second},
		"hung on EXISTS":   {func(s *respfake.Server) { s.Mute(1, "exists") }, "nothing within 1s", time.Second},
		"cut on CONFIG":    {func(s *respfake.Server) { s.Lose(1, "config") }, "EOF", 0},
		"cut on EXISTS":    {func(s *respfake.Server) { s.Lose(1, "exists") }, "EOF", 0},
		"wants a password": {func(s *respfake.Server) { s.Reply("*", "NOAUTH Authentication required.") }, "NOAUTH", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, respfake.Options{})
				l := newLocker(t, nodes, Config{})
				acquire(t, l, "k")
				time.Sleep(time.Hour) // out of quarantine
				test.break_(servers[1])
				began := time.Now()
				r := audit(t, l)
				if took := time.Since(began); took != test.within {
					t.Errorf("took %v, want %v", took, test.within)
				}
				n := r.Nodes[1]
				if n.Facts != nil || n.Votes || !strings.Contains(n.WhyNot, test.why) {
					t.Errorf("%+v, want it to say %q", n, test.why)
				}
				if r.Voters != 2 || !r.QuorumMayVote || !strings.Contains(found(r, n.Node), "problem: does not answer") {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// A report is whole or it is none: whoever is in a hurry gets an error.
func TestAuditEndsWithItsContext(t *testing.T) {
	own := errors.New("the caller's own reason")
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		servers[1].Hang()
		for name, end := range map[string]time.Duration{"before": 0, "meanwhile": 300 * time.Millisecond} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if end == 0 {
				cancel(own)
			} else {
				time.AfterFunc(end, func() { cancel(own) })
			}
			began := time.Now()
			r, err := l.Audit(ctx)
			if r != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, own) || time.Since(began) != end {
				t.Errorf("%s: %+v, %v after %v", name, r, err, time.Since(began))
			}
		}
		// No node is found to be silent because its caller could not wait.
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if r, err := l.Audit(ctx); r != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v, %v", r, err)
			}
			cancel()
		}
		servers[1].Continue()
		synctest.Wait()
		for i, s := range servers {
			if s.Conns() != 1 {
				t.Errorf("node %d has %d connections", i+1, s.Conns())
			}
		}
	})
}

func TestCloseEndsAnAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		servers, nodes := respNodes(t, 3, respfake.Options{})
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		servers[1].Mute(1, "time")
		ended := make(chan error)
		go func() {
			_, err := l.Audit(context.Background())
			ended <- err
		}()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if n := goroutines(); n != before {
			t.Errorf("%d goroutines are left", n-before)
		}
		if r, err := l.Audit(t.Context()); r != nil || !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, %v", r, err)
		}
	})
}

// A dialer of the user's that heeds no context does not keep an Audit, whose
// own context has ended.
func TestAuditDoesNotWaitForADialerThatHeedsNoContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		o := respOptions(servers[2], 2)
		dials, dial, stuck := 0, o.Dialer, make(chan struct{})
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials++; dials > 1 { // not for the lane
				<-stuck
			}
			return dial(ctx, network, addr)
		}
		nodes[2] = Redis(o)
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Audit(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		close(stuck)
	})
}

// Any number of audits run beside the lock's own work, which does not notice.
func TestAuditsRunBesideTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		time.Sleep(time.Hour)
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				for range 10 {
					if r, err := l.Audit(t.Context()); err != nil || r.Voters != 3 {
						t.Errorf("%+v, %v", r, err)
					}
				}
			})
			group.Go(func() {
				for range 50 {
					cycle(t, l, fmt.Sprint("k", w))
				}
			})
		}
		group.Wait()
		synctest.Wait()
		for i, s := range servers {
			if s.Conns() != 1 {
				t.Errorf("node %d has %d connections", i+1, s.Conns())
			}
		}
	})
}

// The Locker has seen a restart in front of it, and knows better than a node
// whose wall clock was stepped since.
func TestAuditKnowsWhatItsLockerHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		time.Sleep(time.Hour)
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		time.Sleep(time.Second) // all lanes are connected, and idle
		servers[1].SetInfo("uptime_in_seconds", "3600")
		servers[1].Restart(false)
		for _, want := range []string{
			": restarted since it was last asked, MaxTTL 30s", // by the audit itself, before an idle lane was
			" ago, MaxTTL 30s",
		} {
			r := audit(t, l)
			if n := r.Nodes[1]; n.Votes || !strings.HasPrefix(n.WhyNot, "is quarantined for ") || !strings.HasSuffix(n.WhyNot, want) || r.Voters != 2 {
				t.Errorf("%+v, want %s", n, want)
			}
			time.Sleep(7500 * time.Millisecond)
		}
		if r := audit(t, newLocker(t, nodes, Config{})); r.Voters != 3 {
			t.Errorf("one who has not seen it: %+v", r)
		}
		time.Sleep(23 * time.Second)
		if r := audit(t, l); r.Voters != 3 {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// What the Locker was told is what the nodes are judged by.
func TestAuditGoesByTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := respNodes(t, 3, respfake.Options{Users: map[string]respfake.User{"default": {Deny: []string{"info", "exists"}}}})
		for _, test := range []struct {
			cfg    Config
			voters int
			want   string
		}{
			{Config{}, 0, "problem: does not say what it is"},
			{Config{AllowUnidentified: true}, 3, "warning: does not say what it is, and votes all the same"},
			{Config{AllowUnidentified: true, Fenced: true}, 0, "problem: does not let its user run exists"},
			{Config{AllowUnidentified: true, DurableNodes: true}, 3, "warning: may forget locks in a restart"},
		} {
			r := audit(t, newLocker(t, nodes, test.cfg))
			if got := found(r, r.Nodes[0].Node); r.Voters != test.voters || !strings.Contains(got, test.want) {
				t.Errorf("%+v: %d voters, %s", test.cfg, r.Voters, got)
			}
		}
	})
}

// Nodes that may be asked nothing are in the report all the same.
func TestAuditOfNodesThatTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := respNodes(t, 3, respfake.Options{Users: map[string]respfake.User{
			"default": {Deny: []string{"info", "client", "config", "cluster", "time", "exists"}},
		}})
		l := newLocker(t, nodes, Config{KeyPrefix: "lock:"})
		r := audit(t, l)
		if r.Voters != 0 || r.QuorumMayVote || !strings.Contains(found(r, ""), "problem: 0 of 3 nodes may vote and 2 are needed") {
			t.Errorf("%+v", r)
		}
		for _, n := range r.Nodes {
			all := found(r, n.Node)
			for _, want := range []string{
				"problem: does not say what it is (INFO: NOPERM this user has no permissions to run the 'info' command): ACL SETUSER … +info",
				"note: does not let its user run client|id", "note: does not let its user run client|kill", "note: does not let its user run time",
			} {
				if !strings.Contains(all, want) {
					t.Errorf("%s: not found: %s in\n%s", n.Node, want, all)
				}
			}
			if n.Facts == nil || n.Facts.Server != "" || n.Durable != "unknown" || n.ClockOffset != nil || n.Run != "" {
				t.Errorf("%+v: %+v", n, n.Facts)
			}
		}
	})
}

// field-reports: 21, 27
func TestAuditFindsAReplicaAndAnEvictingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		servers[1].SetInfo("role", "slave")
		servers[1].Reply("set", "READONLY You can't write against a read only replica.")
		servers[2].SetInfo("maxmemory", "1048576")
		servers[2].SetInfo("maxmemory_policy", "volatile-lru")
		time.Sleep(time.Hour)
		r := audit(t, newLocker(t, nodes, Config{}))
		if n := r.Nodes[1]; n.Votes || n.WhyNot != "is a replica" || n.Facts.RefusedWrites == "" {
			t.Errorf("%+v: %+v", n, n.Facts)
		}
		if got := found(r, r.Nodes[2].Node); !r.Nodes[2].Votes || !strings.Contains(got, "warning: forgets keys when its memory is full (maxmemory 1 MiB, maxmemory-policy volatile-lru)") {
			t.Errorf("%s", got)
		}
	})
}

// The wall clock of one node is wrong, and that of this machine is.
func TestAuditComparesClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := respNodes(t, 3, respfake.Options{})
		clk := clock.NewSkewed(1)
		time.Sleep(time.Hour)
		l := newLocker(t, nodes, Config{Clock: clk})
		if r := audit(t, l); found(r, "") != "" {
			t.Errorf("%+v", r.Findings)
		}
		clk.Step(-3 * time.Second)
		r := audit(t, l)
		if got := found(r, ""); !strings.HasPrefix(got, "warning: this machine's clock is 3s behind those of the nodes") {
			t.Errorf("%s", got)
		}
		if c := r.Nodes[0].ClockOffset; c == nil || c.AheadMS != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// What went wrong is told without the password that it may have been.
func TestAuditTellsNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, guarded)
		for i, password := range []string{secret, "wrong-" + secret, ""} {
			o := respOptions(servers[i], i)
			o.Password = password
			o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return nil }
			nodes[i] = Redis(o)
		}
		r := audit(t, newLocker(t, nodes, Config{}))
		text := fmt.Sprintf("%+v", *r)
		for _, n := range r.Nodes {
			text += fmt.Sprintf("%+v", n.Facts)
		}
		if strings.Contains(text, secret) {
			t.Errorf("the password is in %s", text)
		}
		if !strings.Contains(found(r, r.Nodes[1].Node), "WRONGPASS") || !strings.Contains(found(r, r.Nodes[2].Node), "NOAUTH") || r.Nodes[0].Facts == nil {
			t.Errorf("%+v", r.Findings)
		}
	})
}
