package redlock

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// hang is how long anything on a real server may take before a test gives it
// up for hung. How long it does take is not tested.
const hang = 2 * time.Minute

// patient is a Config for real servers on a machine that is busy with something
// else: nothing is late there.
func patient() Config {
	return Config{DurableNodes: true, AllowUnidentified: true, TTL: 20 * time.Second, NodeTimeout: 5 * time.Second, Clock: clock.System{}}
}

// realServer is a server process, and someone who may do everything there.
type realServer struct {
	*redisproc.Server
	options redis.Options // for the lock
	admin   *redis.Client
}

// startServer starts a server that ends with the test, or skips the test where
// there is none to start.
func startServer(t testing.TB, o redisproc.Options) *realServer {
	t.Helper()
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	s, err := redisproc.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &realServer{Server: s, options: redis.Options{Addr: s.Addr()}}
	r.admin = redis.NewClient(&redis.Options{
		Addr: s.Addr(), PoolSize: 1, PipelinePoolSize: -1, ReadTimeout: hang, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		r.admin.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// startServers starts n servers without any peculiarities.
func startServers(t testing.TB, n int) (servers []*realServer, nodes []Node) {
	t.Helper()
	for range n {
		s := startServer(t, redisproc.Options{})
		servers, nodes = append(servers, s), append(nodes, s.node())
	}
	return servers, nodes
}

// node is the server as the lock sees it.
func (s *realServer) node() Node { return Redis(&s.options) }

// proxyTo starts a proxy to a server that ends with the test.
func proxyTo(t testing.TB, s *realServer) *redisproc.Proxy {
	t.Helper()
	p, err := redisproc.NewProxy(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// do has the admin run a command that must not fail.
func (s *realServer) do(t testing.TB, args ...any) any {
	t.Helper()
	got, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%v: %v", args, err)
	}
	return got
}

// keys are what the server holds in the database of the lock.
func (s *realServer) keys(t testing.TB) (keys []string) {
	t.Helper()
	_, err := s.admin.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Do(context.Background(), "select", s.options.DB)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err = s.admin.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// conns counts the connections to the server, but for the admin's own.
func (s *realServer) conns(t testing.TB) int {
	t.Helper()
	list, err := s.admin.ClientList(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n") - 1
}

// onServers is a Locker on real nodes, closed with the test.
func onServers(t testing.TB, nodes []Node, cfg Config) *Locker {
	t.Helper()
	l, err := New(nodes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, l) })
	return l
}

// shut closes a Locker whose nodes are all up.
func shut(t testing.TB, l *Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// eventually waits until what is reported is what is wanted.
func eventually[T comparable](t testing.TB, what string, want T, report func() T) {
	t.Helper()
	deadline := time.Now().Add(hang)
	for {
		got := report()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// freePort is a port of the address that nobody listened on a moment ago.
func freePort(t testing.TB, host string) (port string, ok bool) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", false
	}
	defer l.Close()
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, err == nil
}
