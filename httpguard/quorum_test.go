package httpguard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// quorumOf is the quorum lock on three servers of its own.
func quorumOf(t *testing.T) ([]*redisproc.Server, *redlock.Locker) {
	t.Helper()
	redisproc.Require(t)
	var servers []*redisproc.Server
	var nodes []redlock.Node
	for range 3 {
		s, err := redisproc.Start(t.Context(), redisproc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		servers = append(servers, s)
		nodes = append(nodes, redlock.Redis(&redis.Options{Addr: s.Addr()}))
	}
	// Durable, as they have just been started; here they are never restarted.
	locker, err := redlock.New(nodes, redlock.Config{TTL: 20 * time.Second, NodeTimeout: time.Second, DurableNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // not for what dead nodes may hold
		defer cancel()
		locker.Close(ctx)
	})
	return servers, locker
}

func TestSubmitOnceOnTheQuorumLock(t *testing.T) {
	servers, locker := quorumOf(t)
	o := newOrder()
	s := serve(t, submitOnceOn(t, Quorum(locker), SubmitConfig{RequireLock: true}, o), false)
	first := make(chan answer, 1)
	go func() { first <- send(t, s, "POST", "/orders", `{"skuId":1,"count":2}`) }()
	await(t, o.begun)

	const key = "submit:u1:POST:/orders:a8ab397176bbd8ce"
	holding := 0 // the third may not have been asked yet
	for _, server := range servers {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		ttl, err := client.PTTL(t.Context(), key).Result()
		if err != nil || ttl > 5*time.Second {
			t.Errorf("%s: PTTL %v, %v; want up to 5s", server.Addr(), ttl, err)
		}
		if ttl > 0 {
			holding++
		}
		client.Close()
	}
	if holding < 2 {
		t.Errorf("%d of 3 nodes hold %s", holding, key)
	}
	again := send(t, s, "POST", "/orders", `{"skuId":1,"count":2}`)
	wantProblem(t, again, http.StatusTooManyRequests, "submitted-twice")
	if after := again.header.Get("Retry-After"); len(after) != 1 || after < "1" || after > "5" {
		t.Errorf("Retry-After %q, want 1 to 5", after)
	}
	close(o.end)
	if a := await(t, first); a.status != http.StatusCreated {
		t.Errorf("first: %d %s", a.status, a.body)
	}
	// Acquire waits until it has been released, well before its TTL ends by itself.
	lease, err := locker.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context())
}

// Held by another is one answer, and a lock that cannot be asked another.
//
// field-reports: 75
func TestNoQuorumIsNotHeldByAnother(t *testing.T) {
	servers, locker := quorumOf(t)
	o := newOrder()
	close(o.end)
	var last error
	decided := func(_ *http.Request, _ Decision, err error) { last = err }
	strict := submitOnceOn(t, Quorum(locker), SubmitConfig{RequireLock: true, Decided: decided}, o)
	lenient := submitOnceOn(t, Quorum(locker), SubmitConfig{Decided: decided}, o)
	const key = "submit:u1:POST:/orders:44136fa355b3678a"
	steal := func(server *redisproc.Server) {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		if err := client.Set(t.Context(), key, "somebody else", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}

	steal(servers[0])
	steal(servers[1])
	held := record(strict, request("POST", "/orders", ""))
	wantProblem(t, held, http.StatusTooManyRequests, "submitted-twice")
	if after, _ := strconv.Atoi(held.header.Get("Retry-After")); after < 10 || after > 60 {
		t.Errorf("Retry-After %q, want what is left of a minute", held.header.Get("Retry-After"))
	}
	if !errors.Is(last, redlock.ErrHeld) {
		t.Errorf("two of three stolen: %v", last)
	}

	// One says no, one is dead, one would say yes: nobody knows.
	for _, server := range servers[1:] {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, record(strict, request("POST", "/orders", "")), http.StatusServiceUnavailable, "guard-unavailable")
	if !errors.Is(last, redlock.ErrNoQuorum) {
		t.Errorf("one stolen, two dead: %v", last)
	}
	if got := record(lenient, request("POST", "/orders", "")); got.status != http.StatusCreated {
		t.Errorf("let through: %d %s", got.status, got.body)
	}
}

func TestQuorumRefusesATTLThatItsLockerDoes(t *testing.T) {
	_, locker := quorumOf(t)
	_, err := SubmitOnce(Quorum(locker), SubmitConfig{Principal: user, TTL: time.Hour})
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("TTL above MaxTTL: %v", err)
	}
}
