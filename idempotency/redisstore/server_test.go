package redisstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// hang is when a test that still waits is given up.
const hang = time.Minute

const (
	lease     = time.Minute
	retention = time.Hour
)

var (
	order    = idempotency.Key{Operation: "orders", Principal: "u1001", Value: "req-001"}
	printOfX = fingerprint.Print("v1:x")
	asked    = idempotency.Request{Key: order, Fingerprint: printOfX}
)

func serve(t testing.TB, args ...string) *redisproc.Server {
	t.Helper()
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	server, err := redisproc.Start(ctx, redisproc.Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

func claim(owner idempotency.Token) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key: order, Fingerprint: printOfX, Owner: owner, Lease: lease, Retention: retention, Holder: "host/1",
	}
}

func guard(t testing.TB, s idempotency.Store, c idempotency.Config) *idempotency.Guard {
	t.Helper()
	g, err := idempotency.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// elapse moves a record's times back, which is all of the server's clock that
// there is to it.
func elapse(client redis.UniversalClient) func(context.Context, idempotency.Key, time.Duration) error {
	back := redis.NewScript(`
		local left = redis.call('PTTL', KEYS[1]) - ARGV[1]
		if left <= 0 then
			return redis.call('DEL', KEYS[1])
		end
		for _, field in ipairs({'lu', 'sa'}) do
			if redis.call('HEXISTS', KEYS[1], field) == 1 then
				redis.call('HINCRBY', KEYS[1], field, -ARGV[1])
			end
		end
		return redis.call('PEXPIRE', KEYS[1], left)`)
	return func(ctx context.Context, k idempotency.Key, d time.Duration) error {
		return back.Run(ctx, client, []string{"idem:" + k.String()}, d.Milliseconds()).Err()
	}
}

func forget(client redis.UniversalClient) func(context.Context, idempotency.Key) error {
	return func(ctx context.Context, k idempotency.Key) error {
		return client.Del(ctx, "idem:"+k.String()).Err()
	}
}

// member is a server that is a whole cluster by itself.
func member(t *testing.T) *redis.ClusterClient {
	t.Helper()
	// The port of a cluster's own talk is 10000 above the first by default, which
	// may be past the last there is.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, bus, _ := net.SplitHostPort(l.Addr().String())
	must(t, l.Close())
	server := serve(t, "--cluster-enabled", "yes", "--cluster-port", bus)

	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	plain := dial(t, server.Addr())
	must(t, plain.ClusterAddSlotsRange(ctx, 0, 16383).Err())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for up := false; !up; <-tick.C {
		info, err := plain.ClusterInfo(ctx).Result()
		must(t, err)
		up = strings.Contains(info, "cluster_state:ok")
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}
