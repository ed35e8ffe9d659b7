package redlock

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// kindsOfServer are the ways to a real server that the lock must know.
var kindsOfServer = map[string]func(t testing.TB) *realServer{
	"TCP": func(t testing.TB) *realServer { return startServer(t, redisproc.Options{}) },
	"IPv6": func(t testing.TB) *realServer {
		if _, ok := freePort(t, "::1"); !ok {
			t.Skip("this machine has no IPv6")
		}
		s := startServer(t, redisproc.Options{Args: []string{"--bind", "127.0.0.1", "::1"}})
		_, port, _ := net.SplitHostPort(s.Addr())
		s.options.Addr = net.JoinHostPort("::1", port)
		return s
	},
	"Unix socket": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{UnixSocket: true})
		s.options.Addr = s.Socket()
		return s
	},
	"RESP3": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{})
		s.options.Protocol = 3
		return s
	},
	"database 3": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{})
		s.options.DB = 3
		return s
	},
	"password": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{})
		s.options.Password = secret
		s.do(t, "config", "set", "requirepass", secret) // the admin is in already
		return s
	},
	"ACL user": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{})
		s.permit(t, slices.Concat(needed, useful)...)
		return s
	},
	"ACL user, only what is needed": func(t testing.TB) *realServer {
		s := startServer(t, redisproc.Options{})
		s.permit(t, needed...)
		return s
	},
	"TLS":     startTLSServer,
	"cluster": startClusterMember,
}

// field-reports: 118
func TestLockWorksOnEveryKindOfServer(t *testing.T) {
	for name, start := range kindsOfServer {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockWorks(t, start(t))
		})
	}
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		var servers []*realServer
		for _, kind := range []string{"TCP", "Unix socket", "ACL user", "TLS", "cluster"} {
			servers = append(servers, kindsOfServer[kind](t))
		}
		lockWorks(t, servers...)
	})
}

// lockWorks runs everything a lock does on the servers, one node each.
func lockWorks(t *testing.T, servers ...*realServer) {
	t.Helper()
	var nodes []Node
	for _, s := range servers {
		nodes = append(nodes, s.node())
	}
	renewed := make(chan error, 100)
	cfg := patient()
	cfg.Trace = &Trace{Extended: func(e ExtendEvent) {
		if e.Renewal {
			renewed <- e.Err
		}
	}}
	l, rival := onServers(t, nodes, patient()), onServers(t, nodes, patient())
	cfg.TTL, cfg.NodeTimeout = 4*time.Second, time.Second
	renewing := onServers(t, nodes, cfg)
	for _, key := range []string{"k", "{a}b", unusualKeys[3], "a\r\nb"} {
		wholeCycle(t, l, rival, key)
	}
	// More than a flight of one key, of all kinds.
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() { wholeCycle(t, l, rival, fmt.Sprint("k", w)) })
	}
	wg.Wait()

	lease, err := renewing.TryAcquire(context.Background(), "renewed")
	if err != nil {
		t.Fatal(err)
	}
	lease.KeepAlive()
	select {
	case err := <-renewed:
		if err != nil {
			t.Errorf("renewal: %v", err)
		}
	case <-time.After(hang):
		t.Fatal("no renewal")
	}
	for i, s := range servers {
		eventually(t, fmt.Sprintf("connections of three lockers to node %d", i+1), 3, func() int { return s.conns(t) })
	}
	if err := lease.Release(context.Background()); err != nil {
		t.Errorf("release: %v", err)
	}
	for _, l := range []*Locker{l, rival, renewing} {
		shut(t, l)
	}
	for i, s := range servers {
		if left := s.keys(t); len(left) > 0 {
			t.Errorf("left on node %d: %q", i+1, left)
		}
		eventually(t, fmt.Sprintf("connections to node %d after Close", i+1), 0, func() int { return s.conns(t) })
	}
}

// startClusterMember starts the only member of a cluster.
func startClusterMember(t testing.TB) *realServer {
	bus, ok := freePort(t, "127.0.0.1") // the default is out of range for a high port
	if !ok {
		t.Fatal("no free port")
	}
	s := startServer(t, redisproc.Options{Args: []string{"--cluster-enabled", "yes", "--cluster-port", bus}})
	s.do(t, "cluster", "addslotsrange", 0, 16383)
	eventually(t, "the cluster is up", true, func() bool {
		info, _ := s.do(t, "cluster", "info").(string)
		return strings.Contains(info, "cluster_state:ok")
	})
	return s
}

// With two of five nodes dead or stopped everything succeeds.
//
// field-reports: 50
func TestTwoOfFiveServersAreNotNeeded(t *testing.T) {
	for name, fault := range map[string]struct {
		begin func(s *realServer) error
		end   func(s *realServer, ctx context.Context) error
	}{
		"killed": {
			func(s *realServer) error { return s.Kill() },
			func(s *realServer, ctx context.Context) error { return s.Restart(ctx, redisproc.Wipe) },
		},
		"stopped": {
			func(s *realServer) error { return s.Stop() },
			func(s *realServer, ctx context.Context) error { return s.Cont() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, nodes := startServers(t, 5)
			l := onServers(t, nodes, patient())
			run := func(cycles int) {
				var wg sync.WaitGroup
				for w := range 32 {
					wg.Go(func() {
						for range cycles {
							cycle(t, l, fmt.Sprint("k", w))
						}
					})
				}
				wg.Wait()
			}
			run(10)
			for _, s := range servers[:2] {
				if err := fault.begin(s); err != nil {
					t.Fatal(err)
				}
			}
			run(40)
			ctx, cancel := context.WithTimeout(context.Background(), hang)
			defer cancel()
			for _, s := range servers[:2] {
				if err := fault.end(s, ctx); err != nil {
					t.Fatal(err)
				}
			}
			shut(t, l)
			for i, s := range servers {
				if left := s.keys(t); len(left) > 0 {
					t.Errorf("left on node %d: %q", i+1, left)
				}
			}
		})
	}
}

// Close ends every goroutine that the Locker, or go-redis for it, has started.
//
// field-reports: 56
func TestNoGoroutineIsLeftAfterClose(t *testing.T) {
	servers, nodes := startServers(t, 5)
	if err := servers[4].Kill(); err != nil {
		t.Fatal(err)
	}
	before := ourGoroutines()
	for range 3 {
		l := onServers(t, nodes, patient())
		var wg sync.WaitGroup
		for w := range 32 {
			wg.Go(func() {
				// Whether it succeeds is not what is tested here.
				l.Do(context.Background(), fmt.Sprint(w), func(context.Context, *Lease) error { return nil })
			})
		}
		if lease, err := l.TryAcquire(context.Background(), "held"); err == nil {
			lease.KeepAlive()
		}
		servers[0].do(t, "client", "kill", "type", "normal") // connections end in many ways
		wg.Wait()
		if ourGoroutines() <= before {
			t.Error("no goroutine while it works: the test shows nothing")
		}
		shut(t, l)
		// What a goroutine does after the last thing that Close waits for is to end.
		eventually(t, "no goroutine is left", true, func() bool { return ourGoroutines() <= before })
	}
}

// ourGoroutines counts the goroutines of this module and of go-redis that are
// no test's.
func ourGoroutines() (count int) {
	stacks := make([]byte, 1<<20)
	for len(stacks) == cap(stacks) {
		stacks = make([]byte, 2*cap(stacks))
		stacks = stacks[:runtime.Stack(stacks, true)]
	}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "testing.tRunner") || strings.Contains(stack, "redisproc.") {
			continue
		}
		if strings.Contains(stack, "quorumlock") || strings.Contains(stack, "go-redis") {
			count++
		}
	}
	return count
}
