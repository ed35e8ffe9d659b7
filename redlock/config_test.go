package redlock

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
)

// field-reports: 27, 110
func TestBadSettingsAreRefusedByName(t *testing.T) {
	_, three := memNodes(3)
	_, sixteen := memNodes(16)
	twice := []Node{Redis(&redis.Options{Addr: "LOCALHOST:6379"}), Redis(&redis.Options{Addr: "a:1"}), Redis(&redis.Options{})}
	for _, c := range []struct {
		nodes []Node
		cfg   Config
		want  string
	}{
		{nil, Config{}, "there are no nodes: want 1 to 15"},
		{sixteen, Config{}, "there are 16 nodes"},
		{[]Node{three[0], nil, three[2]}, Config{}, "node 2 of 3 is nil"},
		{[]Node{three[0], Redis(nil)}, Config{}, "node 2 of 2 is nil"},
		{twice, Config{}, "nodes 1 and 3 are both localhost:6379"},
		{three, Config{TTL: -time.Second}, "Config.TTL is -1s"},
		{three, Config{TTL: time.Microsecond}, "Config.TTL is 1µs"},
		{three, Config{TTL: time.Minute}, "Config.TTL is 1m0s: Config.MaxTTL allows at most 30s"},
		{three, Config{TTL: 2 * time.Millisecond}, "Config.TTL is 2ms: the allowance for clock drift, 2.02ms, would use it up"},
		{three, Config{MaxTTL: -1}, "Config.MaxTTL is -1ns"},
		{three, Config{MaxTTL: math.MaxInt64}, "Config.MaxTTL"},
		{three, Config{NodeTimeout: -1}, "Config.NodeTimeout is -1ns"},
		{three, Config{NodeTimeout: 3 * time.Second}, "Config.NodeTimeout is 3s: want at most a quarter of the TTL 10s, 2.5s"},
		{three, Config{MaxHold: -1}, "Config.MaxHold is -1ns"},
		{three, Config{Fenced: true, FenceTTL: 299 * time.Second}, "Config.FenceTTL is 4m59s: want at least 10 times Config.MaxTTL, and a minute, 5m0s here"},
		{three, Config{Fenced: true, TTL: time.Second, MaxTTL: time.Second, FenceTTL: 59 * time.Second}, "want at least 10 times Config.MaxTTL, and a minute, 1m0s here"},
		{three, Config{Fenced: true, FenceTTL: -1}, "Config.FenceTTL is -1ns"},
		{three, Config{Drift: clock.Drift{Rate: 1}}, "Config.Drift.Rate is 1"},
		{three, Config{Drift: clock.Drift{Rate: -0.1}}, "Config.Drift.Rate is -0.1"},
		{three, Config{Drift: clock.Drift{Rate: math.NaN()}}, "Config.Drift.Rate is NaN"},
		{three, Config{Drift: clock.Drift{Slack: -1}}, "Config.Drift.Slack is -1ns"},
		{three, Config{Drift: clock.Drift{Rate: 0.9999}}, "would use it up"},
		{three, Config{KeyPrefix: strings.Repeat("p", 1024)}, "Config.KeyPrefix has 1024 bytes"},
	} {
		l, err := New(c.nodes, c.cfg)
		if l != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestBadKeysAreRefusedBeforeAnythingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{KeyPrefix: "lock:"})
		for _, key := range []string{"", strings.Repeat("k", 1020)} {
			for name, call := range map[string]func() error{
				"TryAcquire": func() error { _, err := l.TryAcquire(t.Context(), key); return err },
				"Acquire":    func() error { _, err := l.Acquire(t.Context(), key); return err },
				"Do":         func() error { return l.Do(t.Context(), key, func(context.Context, *Lease) error { return nil }) },
				"Inspect":    func() error { _, err := l.Inspect(t.Context(), key); return err },
			} {
				if err := call(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "key") {
					t.Errorf("%s with a key of %d bytes: %v", name, len(key), err)
				}
			}
		}
		if err := l.Do(t.Context(), "k", nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("Do without fn: %v", err)
		}
		synctest.Wait()
		if mem[0].arrived() != 0 {
			t.Errorf("%d operations were sent", mem[0].arrived())
		}
		for _, key := range []string{" ", "ключ", "a\x00b", "a\r\nb", "{a}b", "}{", strings.Repeat("k", 1019)} {
			lease := acquire(t, l, key)
			if lease.Key() != key {
				t.Errorf("%q became %q", key, lease.Key())
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("%q: %v", key, err)
			}
		}
	})
}

func TestDialRefusesBrokenURLsWithoutRepeatingThem(t *testing.T) {
	for _, url := range []string{
		"", "host:6379", "http://host", "redis://:s3cret@host:port", "redis://u:s3cret/x@host:1", "redis://u:s3cret#@host",
		"redis://u:s3cret@host:1/db", "redis://u:s3cret%zz@host", "unix://u:s3cret@", "redis://u:s3cret@host?db=s3cret",
	} {
		_, err := Dial([]string{"redis://ok:6379", url}, Config{})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "URL 2 of 2") {
			t.Errorf("%q: %v", url, err)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password shows: %v", err)
		}
	}
}

func TestWhatIsAskedOfNodesIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		time.Millisecond: 1, 1500 * time.Microsecond: 2, time.Second: 1000, time.Second + 1: 1001, 1: 1,
	} {
		if got := ceilMillis(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
}

func TestFullJitterIsSpreadAndBounded(t *testing.T) {
	backoff := FullJitter(2*time.Millisecond, 250*time.Millisecond)
	for n, limit := range map[int]time.Duration{0: 2, 1: 4, 6: 128, 7: 250, 63: 250, 1 << 40: 250} {
		limit *= time.Millisecond
		low, high := limit, time.Duration(0)
		for range 2000 {
			d := backoff(n)
			if d <= 0 || d > limit {
				t.Fatalf("attempt %d: %v, want up to %v", n, d, limit)
			}
			low, high = min(low, d), max(high, d)
		}
		if low > limit/10 || high < limit*9/10 {
			t.Errorf("attempt %d: from %v to %v, want all of %v", n, low, high, limit)
		}
	}
}
