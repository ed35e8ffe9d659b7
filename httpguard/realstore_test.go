package httpguard

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Two instances of a service, with one Redis for their records.
func TestAHundredAtOnceOnTwoInstancesRunOnce(t *testing.T) {
	redisproc.Require(t)
	shared, err := redisproc.Start(t.Context(), redisproc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.Close() })
	var runs atomic.Int64
	end := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		<-end
		created(w, r)
	})
	instance := func() http.Handler {
		client := redis.NewClient(&redis.Options{Addr: shared.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { client.Close() })
		guard, err := idempotency.New(redisstore.New(client, redisstore.Config{}), idempotency.Config{
			Lease: time.Minute, StoreTimeout: 10 * time.Second, // patience with the machine, not with the store
		})
		if err != nil {
			t.Fatal(err)
		}
		wrap, err := Idempotent(guard, IdempotentConfig{Principal: user})
		if err != nil {
			t.Fatal(err)
		}
		return wrap(handler)
	}
	a, b := serve(t, instance(), false), serve(t, instance(), true)

	const n = 50
	answers := make(chan answer, 2*n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() { answers <- send(t, a, "POST", "/orders", "{}", "Idempotency-Key", "k1") })
		all.Go(func() { answers <- send(t, b, "POST", "/orders", "{}", "Idempotency-Key", "k1") })
	}
	for range 2*n - 1 {
		wantProblem(t, await(t, answers), http.StatusConflict, "in-progress")
	}
	close(end)
	isOrder(t, await(t, answers), false)
	isOrder(t, send(t, a, "POST", "/orders", "{}", "Idempotency-Key", "k1"), true)
	isOrder(t, send(t, b, "POST", "/orders", " {} ", "Idempotency-Key", `"k1"`), true)
	wantProblem(t, send(t, b, "POST", "/orders", "[]", "Idempotency-Key", "k1"), http.StatusUnprocessableEntity, "mismatch")
	all.Wait()
	if got := runs.Load(); got != 1 {
		t.Errorf("%d runs", got)
	}

	// The order has been made before its record can be kept: the client gets it.
	dies := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := shared.Kill(); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "made")
	})
	handler = dies
	c := serve(t, instance(), false)
	if got := send(t, c, "POST", "/orders", "{}", "Idempotency-Key", "k2"); got.status != http.StatusOK || got.body != "made" {
		t.Errorf("%d %s", got.status, got.body)
	}
	wantProblem(t, send(t, c, "POST", "/orders", "{}", "Idempotency-Key", "k2"), http.StatusServiceUnavailable, "store-unavailable")
	wantProblem(t, send(t, a, "POST", "/orders", "{}", "Idempotency-Key", "k1"), http.StatusServiceUnavailable, "store-unavailable")
}
