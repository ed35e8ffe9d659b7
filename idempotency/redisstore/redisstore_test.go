package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
	"github.com/quorumlock/quorumlock/idempotency/storetest"
)

// field-reports: 31, 33, 35, 37, 85, 120
func TestStoreOnAServer(t *testing.T) {
	client := dial(t, serve(t).Addr())
	storetest.Run(t, storetest.Subject{
		Store: redisstore.New(client, redisstore.Config{}), Elapse: elapse(client), Forget: forget(client),
	})
}

// field-reports: 118
func TestStoreOnAClusterMember(t *testing.T) {
	client := member(t)
	storetest.Run(t, storetest.Subject{
		Store: redisstore.New(client, redisstore.Config{}), Elapse: elapse(client), Forget: forget(client),
	})
}

// The script that claims answers with these codes and words, whatever the store
// makes of them.
func TestScriptAnswers(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{})
	source := redisstore.ClaimSource
	run := func(print, owner string) []any {
		t.Helper()
		answer, err := client.Eval(t.Context(), source, []string{"idem:orders:u1001:req-001"}, owner, 60000, 86400000, "host/1", print).Slice()
		must(t, err)
		return answer
	}
	is := func(answer []any, code int64, name string) {
		t.Helper()
		if answer[0] != code || answer[1] != name {
			t.Errorf("%v, want %d %s", answer, code, name)
		}
	}
	is(run("v1:x", "a"), 0, "CREATED")
	is(run("v1:x", "b"), 1, "IN_PROGRESS")
	is(run("v1:y", "b"), 3, "FINGERPRINT_MISMATCH")
	must(t, s.MarkUnknown(t.Context(), idempotency.UnknownRequest{Key: order, Owner: "a", Pause: time.Minute, Retention: retention}))
	is(run("v1:x", "b"), 5, "UNKNOWN")
	must(t, elapse(client)(t.Context(), order, 2*time.Minute))
	is(run("v1:x", "b"), 4, "TAKEOVER")
	_, err := s.Complete(t.Context(), idempotency.CompleteRequest{Key: order, Owner: "b", Response: []byte(`{"orderId":"o1001"}`), Retention: retention})
	must(t, err)
	answer := run("v1:x", "c")
	is(answer, 2, "SUCCESS")
	if answer[len(answer)-1] != `{"orderId":"o1001"}` {
		t.Errorf("replayed: %v", answer)
	}
	left, err := client.PTTL(t.Context(), "idem:orders:u1001:req-001").Result()
	if err != nil || left > 24*time.Hour || left < 23*time.Hour {
		t.Errorf("it lives for %v, %v: want a day", left, err)
	}
}

// Every claim runs the same script, and what differs is in its arguments.
func TestScriptsAreFixed(t *testing.T) {
	client := dial(t, serve(t).Addr())
	g := guard(t, redisstore.New(client, redisstore.Config{}), idempotency.Config{})
	for i := range 300 {
		r := asked
		r.Key.Value = fmt.Sprint(i)
		if _, _, err := g.Do(t.Context(), r, answers(nil, "o1001")); err != nil {
			t.Fatal(err)
		}
	}
	if n := info(t, client, "memory", "number_of_cached_scripts"); n != "2" {
		t.Errorf("the server keeps %s scripts, want 2: claim and complete", n)
	}
}

// info is one line of a section of the server's INFO.
func info(t *testing.T, client *redis.Client, section, name string) string {
	t.Helper()
	text, err := client.Info(t.Context(), section).Result()
	must(t, err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// answers is a run that counts itself and answers text.
func answers(runs *atomic.Int32, text string) idempotency.Func {
	return func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		if runs != nil {
			runs.Add(1)
		}
		return idempotency.Result{Response: []byte(text)}, nil
	}
}

// field-reports: 60
func TestForgottenScriptsAreNoError(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{})
	flush := func() { must(t, client.ScriptFlush(t.Context()).Err()) }
	_, err := s.Claim(t.Context(), claim("a"))
	must(t, err)
	flush()
	must(t, s.Renew(t.Context(), idempotency.RenewRequest{Key: order, Owner: "a", Lease: lease, Retention: retention}))
	flush()
	c, err := s.Claim(t.Context(), claim("b"))
	if err != nil || c.Outcome != idempotency.InProgress {
		t.Errorf("%v, %v", c.Outcome, err)
	}
	flush()
	_, err = s.Complete(t.Context(), idempotency.CompleteRequest{Key: order, Owner: "a", Retention: retention})
	must(t, err)
}

// Time of this test's own, not moved: a lease of the server's ends by itself.
func TestALeaseEndsByItself(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	short := claim("a")
	short.Lease = 30 * time.Millisecond
	_, err := s.Claim(ctx, short)
	must(t, err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := s.Claim(ctx, claim("b"))
		must(t, err)
		if c.Outcome == idempotency.Takeover {
			if c.Age < short.Lease {
				t.Errorf("taken over after %v, with a lease of %v", c.Age, short.Lease)
			}
			return
		}
		if c.Outcome != idempotency.InProgress || c.Left > short.Lease {
			t.Fatalf("%v, %v left", c.Outcome, c.Left)
		}
		<-tick.C
	}
}

// field-reports: 106
func TestADuplicateCostsOneCommand(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{})
	g := guard(t, s, idempotency.Config{})
	_, err := s.Claim(t.Context(), claim("a"))
	must(t, err)
	before := info(t, client, "commandstats", "cmdstat_evalsha")
	must(t, client.ConfigResetStat(t.Context()).Err())
	const duplicates = 200
	for range duplicates {
		_, _, err := g.Do(t.Context(), asked, answers(nil, ""))
		var busy *idempotency.InProgressError
		if !errors.As(err, &busy) || busy.RetryAfter < time.Second {
			t.Fatalf("%v", err)
		}
	}
	after := info(t, client, "commandstats", "cmdstat_evalsha")
	if calls, _, _ := strings.Cut(after, ","); calls != fmt.Sprint("calls=", duplicates) {
		t.Errorf("%d duplicates made %s (before: %s)", duplicates, calls, before)
	}
}

// What is under the name of a record and is none is not overwritten.
func TestAnothersKeyIsLeftAlone(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{KeyPrefix: "app"})
	for name, put := range map[string]func(key string) error{
		"a string":      func(key string) error { return client.Set(t.Context(), key, "x", 0).Err() },
		"a list":        func(key string) error { return client.RPush(t.Context(), key, "x").Err() },
		"another hash":  func(key string) error { return client.HSet(t.Context(), key, "x", "y").Err() },
		"half a record": func(key string) error { return client.HSet(t.Context(), key, "fp", "v1:x", "st", "P").Err() },
		"without a life": func(key string) error {
			return client.HSet(t.Context(), key, "fp", "v1:x", "st", "P", "att", 1, "sa", 1).Err()
		},
		"in another state": func(key string) error {
			return client.HSet(t.Context(), key, "fp", "v1:x", "st", "X", "att", 1, "sa", 1, "lu", 1).Err()
		},
		"counted in words": func(key string) error {
			return client.HSet(t.Context(), key, "fp", "v1:x", "st", "P", "att", "one", "sa", 1, "lu", 1).Err()
		},
		"begun in words": func(key string) error {
			return client.HSet(t.Context(), key, "fp", "v1:x", "st", "P", "att", 1, "sa", "now", "lu", 1).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := claim("a")
			r.Key.Value = name
			key := "app:" + r.Key.String()
			must(t, put(key))
			before, err := client.Dump(t.Context(), key).Result()
			must(t, err)
			if c, err := s.Claim(t.Context(), r); err == nil {
				t.Errorf("it was claimed: %v", c.Outcome)
			}
			if _, err := s.Complete(t.Context(), idempotency.CompleteRequest{Key: r.Key, Owner: "a", Retention: retention}); err == nil {
				t.Error("it was completed")
			}
			after, err := client.Dump(t.Context(), key).Result()
			if err != nil || after != before {
				t.Errorf("it was changed, %v", err)
			}
		})
	}
	// Neither does it end a list.
	_, err := s.Claim(t.Context(), claim("a"))
	must(t, err)
	var found []string
	for r, err := range s.List(t.Context(), idempotency.Filter{}) {
		must(t, err)
		found = append(found, r.Key.Value)
	}
	if !slices.Equal(found, []string{order.Value}) {
		t.Errorf("listed: %q", found)
	}
}

// More records than the server looks at in one step, among other keys.
func TestAListSeesEveryRecord(t *testing.T) {
	client := dial(t, serve(t).Addr())
	s := redisstore.New(client, redisstore.Config{KeyPrefix: "a*[b]?"})
	want := map[string]bool{}
	pipe := client.Pipeline()
	for i := range 1500 {
		r := claim("a")
		r.Key.Value = fmt.Sprint(i)
		_, err := s.Claim(t.Context(), r)
		must(t, err)
		want[r.Key.Value] = true
		pipe.Set(t.Context(), "ab:orders:u1001:"+r.Key.Value, "another's", 0)
		pipe.Set(t.Context(), fmt.Sprint("a*[b]?:no key ", i), "another's", 0)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	got := map[string]bool{}
	for r, err := range s.List(t.Context(), idempotency.Filter{State: idempotency.StateInProgress}) {
		must(t, err)
		got[r.Key.Value] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.List(ended, idempotency.Filter{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a list whose context has ended: %v", err)
		}
	}
}
