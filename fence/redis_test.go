package fence_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

const (
	stock      = "{stock:42}"
	stockFence = "{stock:42}:fence"
	set        = "return redis.call('SET', KEYS[2], ARGV[2])"
)

// guarded is a Redis server of this test's, a client of it, and the guard.
func guarded(t *testing.T) (*redis.Client, fence.Redis) {
	t.Helper()
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := redisproc.Start(ctx, redisproc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return client, func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		return redis.NewScript(script).Run(ctx, client, keys, args...).Result()
	}
}

func holds(t *testing.T, client *redis.Client, key, want string) {
	t.Helper()
	got, err := client.Get(t.Context(), key).Result()
	if errors.Is(err, redis.Nil) {
		got, err = "", nil
	}
	if err != nil || got != want {
		t.Errorf("%s holds %q, %v; want %q", key, got, err, want)
	}
}

func TestRedisRefusesALateHolder(t *testing.T) {
	client, guard := guarded(t)
	for _, step := range []struct {
		token fence.Token
		write string
		want  error
		then  string
	}{
		{41, "by 41", nil, "by 41"},
		{42, "by 42", nil, "by 42"},
		{41, "late", fence.ErrStale, "by 42"},
		{42, "by 42 again", nil, "by 42 again"},
	} {
		_, err := guard.Run(t.Context(), stockFence, step.token, set, []string{stock}, step.write)
		if !errors.Is(err, step.want) {
			t.Errorf("%s writes %q: %v, want %v", step.token, step.write, err, step.want)
		}
		holds(t, client, stock, step.then)
	}
	holds(t, client, stockFence, "42")
}

// The late holder has shown nothing when the new one reads: refusing it at its
// write takes a claim before that read.
func TestRedisClaimBeforeTheReadSavesTheUpdate(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim bool
		late  error
		sold  int
	}{
		{"no claim: an update is lost", false, nil, 2},
		{"claim on entry", true, fence.ErrStale, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, guard := guarded(t)
			if err := client.Set(t.Context(), stock, "10", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if c.claim {
				if err := guard.Claim(t.Context(), stockFence, 42); err != nil {
					t.Fatal(err)
				}
			}
			holds(t, client, stock, "10") // what both compute 9 from
			sold := 0
			sell := func(token fence.Token, want error) {
				_, err := guard.Run(t.Context(), stockFence, token, set, []string{stock}, "9")
				if !errors.Is(err, want) {
					t.Errorf("%s writes: %v, want %v", token, err, want)
				}
				if err == nil {
					sold++
				}
			}
			sell(41, c.late)
			sell(42, nil)
			holds(t, client, stock, "9") // one is missing, whatever was sold
			if sold != c.sold {
				t.Errorf("%d were sold, want %d", sold, c.sold)
			}
			if err := guard.Claim(t.Context(), stockFence, 41); !errors.Is(err, fence.ErrStale) {
				t.Errorf("41 claims: %v", err)
			}
		})
	}
}

func TestRedisComparesLargeFencesExactly(t *testing.T) {
	for _, last := range []fence.Token{
		2, 10, // not as text, where "10" comes before "9"
		1_800_000_000_000_000, 1_800_000_000_000_001,
		1<<53 - 2, 1<<53 - 1,
	} {
		client, guard := guarded(t)
		if err := guard.Claim(t.Context(), stockFence, last); err != nil {
			t.Errorf("%s: %v", last, err)
		}
		if err := guard.Claim(t.Context(), stockFence, last-1); !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s after %s: %v", last-1, last, err)
		}
		if err := guard.Claim(t.Context(), stockFence, last); err != nil {
			t.Errorf("%s again: %v", last, err)
		}
		holds(t, client, stockFence, last.String())
		if next := last + 1; next.Valid() {
			if err := guard.Claim(t.Context(), stockFence, next); err != nil {
				t.Errorf("%s after %s: %v", next, last, err)
			}
		}
	}
}

func TestRedisRefusesWhatIsNoFence(t *testing.T) {
	client, guard := guarded(t)
	for _, other := range []string{"", "gone", "nan", "inf", "-1", "0x29", "4e1", "41.5", " 41", "9007199254740992", "99999999999999999999"} {
		if err := client.Set(t.Context(), stockFence, other, 0).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := guard.Run(t.Context(), stockFence, 42, set, []string{stock}, "written")
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "NOFENCE") {
			t.Errorf("the key holds %q: %v", other, err)
		}
		holds(t, client, stockFence, other)
		holds(t, client, stock, "")
	}

	if err := client.Del(t.Context(), stockFence).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.RPush(t.Context(), stockFence, "41").Err(); err != nil {
		t.Fatal(err)
	}
	if err := guard.Claim(t.Context(), stockFence, 42); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("the key holds a list: %v", err)
	}

	for _, token := range []fence.Token{-1, 0, 1 << 53} {
		if err := guard.Claim(t.Context(), "other", token); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("fence %s: %v", token, err)
		}
	}
	holds(t, client, "other", "")
}

// The script is also for callers in other languages, who have no Token.
func TestGuardScriptRefusesArgumentsThatAreNoFence(t *testing.T) {
	client, guard := guarded(t)
	var script string
	capture := fence.Redis(func(ctx context.Context, s string, keys []string, args ...any) (any, error) {
		script = s
		return guard(ctx, s, keys, args...)
	})
	if err := capture.Claim(t.Context(), stockFence, 41); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]any{nil, {""}, {"0"}, {"nan"}, {"1.8e+15"}, {"-42"}, {"0x2a"}, {"42 "}, {"9007199254740992"}} {
		_, err := guard(t.Context(), script, []string{stockFence}, args...)
		if err == nil || !strings.Contains(err.Error(), "NOFENCE") {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
	holds(t, client, stockFence, "41")
}

func TestRedisRunReturnsWhatTheScriptReturns(t *testing.T) {
	_, guard := guarded(t)
	answer, err := guard.Run(t.Context(), stockFence, 42, "return {KEYS[2], ARGV[2], ARGV[3]}", []string{stock}, "a", 7)
	if got, ok := answer.([]any); err != nil || !ok || len(got) != 3 || got[0] != stock || got[1] != "a" || got[2] != "7" {
		t.Errorf("%v, %v", answer, err)
	}
	_, err = guard.Run(t.Context(), stockFence, 42, "return redis.error_reply('SOLDOUT')", nil)
	if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "SOLDOUT") {
		t.Errorf("the script's own error: %v", err)
	}
}

func TestRedisAcceptsNoFenceAfterALargerOne(t *testing.T) {
	client, guard := guarded(t)
	const holders = 50
	var (
		start = make(chan struct{})
		group sync.WaitGroup
	)
	for n := range holders {
		group.Go(func() {
			<-start
			token := fence.Token(1_800_000_000_000_000 + n)
			_, err := guard.Run(t.Context(), stockFence, token, "return redis.call('RPUSH', KEYS[2], ARGV[1])", []string{stock})
			if err != nil && (!errors.Is(err, fence.ErrStale) || n == holders-1) {
				t.Errorf("%s: %v", token, err)
			}
		})
	}
	close(start)
	group.Wait()
	accepted, err := client.LRange(t.Context(), stock, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(accepted); i++ {
		if accepted[i] <= accepted[i-1] { // all of one length
			t.Errorf("%s was accepted after %s", accepted[i], accepted[i-1])
		}
	}
	if len(accepted) == 0 {
		t.Error("nothing was accepted")
	}
}
