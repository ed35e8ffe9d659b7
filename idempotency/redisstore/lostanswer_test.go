package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// A call that a server has carried out and not answered is carried out again, by
// the client or by the guard, and finds its own work.
//
// field-reports: 29, 70
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	server := serve(t)
	for name, options := range map[string]*redis.Options{
		"the client tries again": {},
		"the guard tries again":  {MaxRetries: -1},
	} {
		for _, lost := range []int{1, 2} { // of the claim, of claim and completion
			t.Run(fmt.Sprint(name, ", ", lost), func(t *testing.T) {
				proxy, err := redisproc.NewProxy(server.Addr())
				must(t, err)
				defer proxy.Close()
				options.Addr, options.ContextTimeoutEnabled = proxy.Addr(), true
				client := redis.NewClient(options)
				defer client.Close()
				g := guard(t, redisstore.New(client, redisstore.Config{}), idempotency.Config{})
				r := asked
				r.Key.Value = fmt.Sprint(name, lost)
				_, _, err = g.Do(t.Context(), idempotency.Request{Key: idempotency.Key{Operation: "warm", Principal: "up", Value: name + fmt.Sprint(lost)}, Fingerprint: printOfX}, answers(nil, ""))
				must(t, err)

				var runs atomic.Int32
				proxy.Lose(1, "evalsha")
				result, info, err := g.Do(t.Context(), r, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
					proxy.Lose(lost-1, "evalsha")
					return answers(&runs, "o1001")(ctx, ex)
				})
				if err != nil || string(result.Response) != "o1001" || info.Outcome != idempotency.Created || !info.Stored {
					t.Errorf("%q, %+v, %v", result.Response, info, err)
				}
				if tally := proxy.Tally(); tally.Lost != lost {
					t.Errorf("%d answers were lost, want %d", tally.Lost, lost)
				}
				result, info, err = g.Do(t.Context(), r, answers(&runs, "again"))
				if err != nil || string(result.Response) != "o1001" || !info.Replayed || runs.Load() != 1 {
					t.Errorf("retry: %q, %+v, %v, %d runs", result.Response, info, err, runs.Load())
				}
			})
		}
	}
}

// A claim that gets no answer at all is given up, and does not block the key for
// a lease when the server is back.
//
// field-reports: 70
func TestAClaimWithoutAnAnswerBlocksNobody(t *testing.T) {
	server := serve(t)
	proxy, err := redisproc.NewProxy(server.Addr())
	must(t, err)
	t.Cleanup(proxy.Close)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	g := guard(t, redisstore.New(client, redisstore.Config{}), idempotency.Config{Lease: time.Hour, Retention: 3 * time.Hour, StoreTimeout: 500 * time.Millisecond})
	warm := asked
	warm.Key.Operation = "warm up" // the server knows the script from then on
	_, _, err = g.Do(t.Context(), warm, answers(nil, ""))
	must(t, err)

	var runs atomic.Int32
	proxy.Mute(3, "evalsha")
	_, info, err := g.Do(t.Context(), asked, answers(&runs, "o1001"))
	if !errors.Is(err, idempotency.ErrStoreUnavailable) || runs.Load() != 0 {
		t.Errorf("%+v, %v, %d runs", info, err, runs.Load())
	}
	if n := proxy.Tally().Muted; n != 3 {
		t.Errorf("%d answers were held back, want those to the three tries", n)
	}
	proxy.Heal()
	if _, info, err = g.Do(t.Context(), asked, answers(&runs, "o1001")); err != nil || runs.Load() != 1 {
		t.Errorf("later: %+v, %v, %d runs", info, err, runs.Load())
	}
}
