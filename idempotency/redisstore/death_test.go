package redisstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// The server is killed in the middle of a run and comes back with nothing: the
// run puts its record back.
func TestAServerThatForgetsIsToldWhatWasDone(t *testing.T) {
	server := serve(t)
	g := guard(t, redisstore.New(dial(t, server.Addr()), redisstore.Config{}), idempotency.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	var runs atomic.Int32
	_, info, err := g.Do(ctx, asked, func(run context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		must(t, server.Kill())
		must(t, server.Restart(ctx, redisproc.Wipe))
		return answers(&runs, "o1001")(run, ex)
	})
	if err != nil || !info.Stored {
		t.Errorf("%+v, %v", info, err)
	}
	r, info, err := g.Do(ctx, asked, answers(&runs, "again"))
	if err != nil || string(r.Response) != "o1001" || !info.Replayed || runs.Load() != 1 {
		t.Errorf("retry: %q, %+v, %v, %d runs", r.Response, info, err, runs.Load())
	}
}

// It is killed and stays away. The answer is given all the same; when the server
// is back with what it had, nothing runs before somebody has been asked.
func TestAServerThatDiesInARunLeavesAQuestion(t *testing.T) {
	server := serve(t, "--appendonly", "yes", "--appendfsync", "always")
	client := dial(t, server.Addr())
	s := redisstore.New(client, redisstore.Config{})
	orders := 0
	g := guard(t, s, idempotency.Config{StoreTimeout: 200 * time.Millisecond, Reconciler: func(context.Context, idempotency.Record) (idempotency.Verdict, error) {
		if orders > 0 {
			return idempotency.Happened(idempotency.Result{Response: []byte("o1001")}), nil
		}
		return idempotency.DidNotHappen(), nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	order1 := func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		orders++
		return idempotency.Result{Response: []byte("o1001")}, server.Kill()
	}
	r, info, err := g.Do(ctx, asked, order1)
	if err != nil || string(r.Response) != "o1001" || info.Stored || !errors.Is(info.StoreErr, idempotency.ErrStoreUnavailable) {
		t.Errorf("%q, %+v, %v", r.Response, info, err)
	}
	if _, _, err := g.Do(ctx, asked, order1); !errors.Is(err, idempotency.ErrStoreUnavailable) {
		t.Errorf("while it is away: %v", err)
	}
	must(t, server.Restart(ctx, redisproc.Keep))
	if _, _, err := g.Do(ctx, asked, order1); !errors.Is(err, idempotency.ErrInProgress) {
		t.Errorf("before the lease has ended: %v", err)
	}
	must(t, elapse(client)(ctx, order, time.Minute))
	r, info, err = g.Do(ctx, asked, order1)
	if err != nil || string(r.Response) != "o1001" || info.Outcome != idempotency.Takeover || !info.Replayed || orders != 1 {
		t.Errorf("after it: %q, %+v, %v, %d orders", r.Response, info, err, orders)
	}
}
