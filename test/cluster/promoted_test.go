package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/test/cluster/client"
)

// promoted has a replica take its master's place behind one address, without the
// lock that the master had granted since the two were parted. Who knew the master
// puts the other in quarantine. Who comes later sees a server that has been up for
// long, and there are two holders: that is why docs/operations.md forbids it. The
// fence of the second is the larger one all the same.
func promoted(s *scenario) {
	const ttl = 10 * time.Second // long enough for all of it; need is 12 s
	cfg := redlock.Config{TTL: ttl, MaxTTL: ttl, NodeTimeout: ttl / 4, Fenced: true}
	s.began = client.Now()

	replica := s.another()
	host, port, err := net.SplitHostPort(s.nodes[2].Peer())
	s.must(err)
	s.must(replica.Admin.Do(s.ctx, "REPLICAOF", host, port).Err())
	eventually(s.T, "the replica is in step", func() bool {
		link, err := replica.Info(s.ctx, "replication", "master_link_status")
		return err == nil && link == "up"
	})
	// One address: what it leads to is decided as a name's is, when it is dialled.
	var led atomic.Bool
	links := map[string][]*redisproc.Proxy{}
	locker := func(name string) *redlock.Locker {
		var all []redlock.Node
		var own []*redisproc.Proxy
		for i, n := range append(slices.Clone(s.nodes), replica) {
			link, err := redisproc.NewProxy(n.Addr())
			s.must(err)
			s.Cleanup(link.Close)
			own = append(own, link)
			if i < len(s.nodes) {
				all = append(all, redlock.Redis(&redis.Options{Addr: link.Addr()}))
			}
		}
		var d net.Dialer
		all[2] = redlock.Redis(&redis.Options{
			Addr: "node3:6379",
			Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				to := own[2]
				if led.Load() {
					to = own[5]
				}
				return d.DialContext(ctx, network, to.Addr())
			},
		})
		links[name] = own
		l, err := redlock.New(all, cfg)
		s.must(err)
		s.Cleanup(func() { l.Close(context.WithoutCancel(s.ctx)) })
		return l
	}
	holder, knows := locker("holder"), locker("knows")
	warm := func(l *redlock.Locker, key string) {
		lease, err := l.Acquire(s.ctx, key)
		s.must(err)
		s.must(lease.Release(s.ctx))
	}
	warm(holder, "stock:1")
	warm(knows, "stock:1")
	// The replica has to have been there for as long as a node must that votes.
	eventually(s.T, "the replica has been up for long", func() bool {
		up, err := replica.Info(s.ctx, "server", "uptime_in_seconds")
		return err == nil && len(up) >= 2 && up >= "14"
	})

	// Parted from its master, and still a replica.
	s.must(replica.Admin.Do(s.ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	for _, l := range links["holder"][3:5] {
		l.Cut()
	}
	called := client.Now()
	first, err := holder.Acquire(s.ctx, "stock:0")
	s.must(err)
	a := history.Hold{Key: "stock:0", Holder: 1, Fence: first.Fence(), Called: called, Acquired: client.Now(), Until: client.Now() + first.Remaining()}
	s.must(replica.Admin.Do(s.ctx, "REPLICAOF", "NO", "ONE").Err())
	if n, err := replica.Admin.Exists(s.ctx, "stock:0").Result(); err != nil || n != 0 {
		s.Fatalf("the replica was not to have the lock: %d, %v", n, err)
	}
	led.Store(true)
	for _, all := range links {
		all[2].Cut()
	}
	s.happened("a replica that was behind was promoted")

	eventually(s.T, "who knew the master has the other in quarantine", func() bool {
		lease, err := knows.TryAcquire(s.ctx, "stock:0")
		if err == nil {
			s.Fatalf("who knew the master has got the lock, with %v left to its holder: %v", first.Remaining(), lease)
		}
		var failure *redlock.AttemptError
		return errors.As(err, &failure) && failure.Votes[2].Quarantined > 0
	})
	called = client.Now()
	second, err := locker("comes later").Acquire(s.ctx, "stock:0")
	s.must(err)
	b := history.Hold{Key: "stock:0", Holder: 2, Fence: second.Fence(), Called: called, Acquired: client.Now(), Until: client.Now() + second.Remaining()}
	if first.Remaining() == 0 {
		s.Fatal("the test was too slow to show anything")
	}
	v := history.Run{Holds: []history.Hold{a, b}, TimingBroken: true}.Judge()
	if len(v.Overlaps) != 1 {
		s.Errorf("%d overlaps: docs/operations.md says that there is one", len(v.Overlaps))
	}
	s.report.Clients, s.report.Acquisitions, s.report.Took = 3, 2, client.Now()-s.began
	s.clean(v)
}
