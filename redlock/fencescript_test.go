package redlock

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/internal/respfake"
)

// What the scripts do with counters is tested on a real server too, and what
// stands for them on a Redis in memory must pass the same tests.
func TestFenceScripts(t *testing.T) {
	t.Run("real server", func(t *testing.T) {
		t.Parallel()
		fenceScriptsWork(t, startServer(t, redisproc.Options{}).admin)
	})
	t.Run("in memory", func(t *testing.T) {
		fenceScriptsWork(t, bystander(t, newRespServer(t, respfake.Options{})))
	})
}

// What keys may hold besides text.
const (
	nothing = "(nothing)"
	aList   = "(list)"
)

// Times are in seconds and far apart, so that it does not matter how long
// anything takes.
const (
	shortTime, longTime, longerTime = 100000, 500000, 900000 // ms
)

// pair is a lock and its counter.
type pair struct{ lock, counter string }

// keep has the server hold a pair for the name, and nothing else of it.
func (p pair) keep(ctx context.Context, pipe redis.Pipeliner, name string) {
	for key, held := range map[string]string{name: p.lock, counterOf(name): p.counter} {
		pipe.Del(ctx, key)
		switch held {
		case nothing:
		case aList:
			pipe.LPush(ctx, key, "item")
		default:
			pipe.Do(ctx, "set", key, held, "px", shortTime)
		}
	}
}

// pairOf is what the server holds for the name, and about for how long, in 100 s.
func pairOf(t *testing.T, rdb *redis.Client, name string) (p pair, ttls string) {
	t.Helper()
	ctx := context.Background()
	get := func(key string) (string, int) {
		held, err := rdb.Get(ctx, key).Result()
		switch {
		case err == redis.Nil:
			held = nothing
		case err != nil:
			held = aList
		}
		left, err := rdb.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return held, int((left + 50*time.Second) / (100 * time.Second))
	}
	var lock, counter int
	p.lock, lock = get(name)
	p.counter, counter = get(counterOf(name))
	return p, fmt.Sprint(lock, " ", counter)
}

// fenceCase is a script's work on one lock.
type fenceCase struct {
	name   string
	before pair
	args   []any
	want   any
	after  pair
	ttls   string // of lock and counter
	again  any    // what it answers when it is run again; nil: the same
}

// An acquire or a stamp is to give the lock and its counter these times.
func acquireArgs(proposed int64) []any { return []any{"t", longTime, proposed, longerTime} }
func stampArgs(fence int64) []any      { return []any{"t", fence, longerTime} }

func fenceCases(now int64) map[OpKind][]fenceCase {
	digits := func(n int64) string { return strconv.FormatInt(n, 10) }
	cases := map[OpKind][]fenceCase{
		OpAcquire: {
			{"free", pair{nothing, nothing}, acquireArgs(now), now, pair{"t", digits(now)}, "5 9", nil},
			{"free, counted less", pair{nothing, "7"}, acquireArgs(now), now, pair{"t", digits(now)}, "5 9", nil},
			{"free, counted less by one", pair{nothing, digits(now - 1)}, acquireArgs(now), now, pair{"t", digits(now)}, "5 9", nil},
			{"free, counted as much", pair{nothing, digits(now)}, acquireArgs(now), now + 1, pair{"t", digits(now + 1)}, "5 9", nil},
			{"free, counted more", pair{nothing, digits(now + 1e15)}, acquireArgs(now), now + 1e15 + 1, pair{"t", digits(now + 1e15 + 1)}, "5 9", nil},
			{"free, counted almost as far as it goes", pair{nothing, "9007199254740990"}, acquireArgs(now),
				int64(9007199254740991), pair{"t", "9007199254740991"}, "5 9", int64(-1)},
			{"free, proposed nothing", pair{nothing, nothing}, acquireArgs(0), int64(1), pair{"t", "1"}, "5 9", nil},
			{"free, proposed less than nothing", pair{nothing, "5"}, acquireArgs(-now), int64(6), pair{"t", "6"}, "5 9", nil},
			{"free, counted from zero", pair{nothing, "0"}, acquireArgs(now), now, pair{"t", digits(now)}, "5 9", nil},
			{"free, counted with zeros in front", pair{nothing, "0000000000000000000000007"}, acquireArgs(3), int64(8), pair{"t", "8"}, "5 9", nil},
			{"own", pair{"t", digits(now - 5)}, acquireArgs(now), now - 5, pair{"t", digits(now - 5)}, "1 1", nil},
			{"own, counted more", pair{"t", digits(now + 5)}, acquireArgs(now), now + 5, pair{"t", digits(now + 5)}, "1 1", nil},
			{"own, counted nothing", pair{"t", nothing}, acquireArgs(now), int64(-1), pair{"t", nothing}, "1 0", nil},
			{"another's", pair{"other", digits(now - 5)}, acquireArgs(now), "other", pair{"other", digits(now - 5)}, "1 1", nil},
			{"another's, counted nothing", pair{"other", nothing}, acquireArgs(now), "other", pair{"other", nothing}, "1 0", nil},
			{"another's, counted what is no number", pair{"other", aList}, acquireArgs(now), "other", pair{"other", aList}, "1 0", nil},
			{"no string", pair{aList, "5"}, acquireArgs(now), int64(0), pair{aList, "5"}, "0 1", nil},
			{"no string, counted nothing", pair{aList, nothing}, acquireArgs(now), int64(0), pair{aList, nothing}, "0 0", nil},
		},
		OpStamp: {
			{"own, counted less", pair{"t", digits(now - 5)}, stampArgs(now), int64(1), pair{"t", digits(now)}, "1 9", nil},
			{"own, counted as much", pair{"t", digits(now)}, stampArgs(now), int64(1), pair{"t", digits(now)}, "1 9", nil},
			{"own, counted more", pair{"t", digits(now + 1)}, stampArgs(now), int64(0), pair{"t", digits(now + 1)}, "1 1", nil},
			{"own, counted nothing", pair{"t", nothing}, stampArgs(now), int64(-1), pair{"t", nothing}, "1 0", nil},
			{"another's, counted less", pair{"other", digits(now - 5)}, stampArgs(now), "other", pair{"other", digits(now - 5)}, "1 1", nil},
			{"another's, counted as much", pair{"other", digits(now)}, stampArgs(now), "other", pair{"other", digits(now)}, "1 1", nil},
			{"almost the token", pair{"t ", digits(now - 5)}, stampArgs(now), "t ", pair{"t ", digits(now - 5)}, "1 1", nil},
			{"free", pair{nothing, digits(now - 5)}, stampArgs(now), int64(0), pair{nothing, digits(now - 5)}, "0 1", nil},
			{"free, counted as much", pair{nothing, digits(now)}, stampArgs(now), int64(0), pair{nothing, digits(now)}, "0 1", nil},
			{"no string", pair{aList, digits(now - 5)}, stampArgs(now), int64(0), pair{aList, digits(now - 5)}, "0 1", nil},
		},
		OpExtend: {
			{"own", pair{"t", "5"}, []any{"t", longTime, longerTime}, int64(1), pair{"t", "5"}, "5 9", nil},
			{"own, by less", pair{"t", "5"}, []any{"t", 1, longTime}, int64(1), pair{"t", "5"}, "1 5", nil},
			{"own, counted nothing", pair{"t", nothing}, []any{"t", longTime, longerTime}, int64(1), pair{"t", nothing}, "5 0", nil},
			{"another's", pair{"other", "5"}, []any{"t", longTime, longerTime}, []any{"other"}, pair{"other", "5"}, "1 1", nil},
			{"free", pair{nothing, "5"}, []any{"t", longTime, longerTime}, []any{int64(0)}, pair{nothing, "5"}, "0 1", nil},
			{"no string", pair{aList, "5"}, []any{"t", longTime, longerTime}, []any{int64(0)}, pair{aList, "5"}, "0 1", nil},
		},
	}
	for _, broken := range []string{
		aList, "", " ", " 5", "5 ", "5\n", "5\x00", "\x005", "-3", "+3", "-0", "1.5", "1e5", "0x10", "nan", "inf", "Infinity", "٣", "five", "5,6",
		"1.8e+15", "9007199254740991", "9007199254740992", "9999999999999999", strings.Repeat("9", 400),
	} {
		name := fmt.Sprintf(", counted %.20q", broken)
		ttls := map[bool]string{true: " 0", false: " 1"}[broken == aList]
		cases[OpAcquire] = append(cases[OpAcquire],
			fenceCase{"free" + name, pair{nothing, broken}, acquireArgs(now), int64(-1), pair{nothing, broken}, "0" + ttls, nil},
			fenceCase{"own" + name, pair{"t", broken}, acquireArgs(now), int64(-1), pair{"t", broken}, "1" + ttls, nil})
		answer := int64(-1)
		if len(broken) > 15 { // a number, and a larger one
			answer = 0
		}
		cases[OpStamp] = append(cases[OpStamp],
			fenceCase{"own" + name, pair{"t", broken}, stampArgs(now), answer, pair{"t", broken}, "1" + ttls, nil})
		if broken == "9007199254740991" { // the largest that a lease can have
			ttls = " 9"
		}
		cases[OpExtend] = append(cases[OpExtend],
			fenceCase{"own" + name, pair{"t", broken}, []any{"t", longTime, longerTime}, int64(1), pair{"t", broken}, "5" + ttls, nil})
	}
	return cases
}

func fenceScriptsWork(t *testing.T, rdb *redis.Client) {
	ctx := context.Background()
	at, err := rdb.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	now := at.UnixMicro()
	for kind, cases := range fenceCases(now) {
		run := func(t *testing.T, keys []string, args []any) any {
			t.Helper()
			got, err := rdb.Eval(ctx, scripts[kind].source, keys, args...).Result()
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		check := func(t *testing.T, name string, test fenceCase) {
			t.Helper()
			if p, ttls := pairOf(t, rdb, name); p != test.after || ttls != test.ttls {
				t.Errorf("it leaves %.50q for %s, want %.50q for %s", p, ttls, test.after, test.ttls)
			}
		}
		for _, test := range cases {
			t.Run(kind.String()+" "+test.name, func(t *testing.T) {
				_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { test.before.keep(ctx, p, "k"); return nil })
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if kind != OpExtend {
					want = []any{want}
				}
				for range 2 {
					if got := run(t, []string{"k", counterOf("k")}, test.args); !reflect.DeepEqual(got, want) {
						t.Errorf("it answers %#v, want %#v", got, want)
					}
					check(t, "k", test)
					if test.again != nil {
						want = []any{test.again}
					}
				}
			})
		}
		if kind == OpExtend {
			continue
		}
		// All in one call, in two orders: none is another's business.
		for range 2 {
			slices.Reverse(cases)
			t.Run(kind.String()+" all", func(t *testing.T) {
				var keys []string
				var args, want []any
				_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
					for i, test := range cases {
						name := fmt.Sprint("k", i)
						test.before.keep(ctx, p, name)
						keys = append(keys, name, counterOf(name))
						// They share the last argument, the counters' time to live.
						args, want = append(args, test.args[:len(test.args)-1]...), append(want, test.want)
					}
					args = append(args, longerTime)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if got := run(t, keys, args); !reflect.DeepEqual(got, want) {
						t.Errorf("it answers %#v\nwant %#v", got, want)
					}
					for i, test := range cases {
						check(t, fmt.Sprint("k", i), test)
						if test.again != nil {
							want[i] = test.again
						}
					}
				}
			})
		}
	}
	t.Run("a client that is ahead", func(t *testing.T) { clampHolds(t, rdb) })
}

// A proposal counts for a second ahead of the server's clock, and no more.
func clampHolds(t *testing.T, rdb *redis.Client) {
	ctx := context.Background()
	server := func() int64 {
		at, err := rdb.Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	grant := func(ahead int64) (fence, before, after int64) {
		t.Helper()
		rdb.FlushAll(ctx)
		before = server()
		got, err := rdb.Eval(ctx, scripts[OpAcquire].source, []string{"k", counterOf("k")}, acquireArgs(before+ahead)...).Int64Slice()
		if err != nil {
			t.Fatal(err)
		}
		if stored := rdb.Get(ctx, counterOf("k")).Val(); stored != strconv.FormatInt(got[0], 10) {
			t.Errorf("it answers %d and stores %s", got[0], stored)
		}
		return got[0], before, server()
	}
	for _, ahead := range []int64{0, 999_999, 1_000_000} { // the server's clock goes on
		if f, before, _ := grant(ahead); f != before+ahead {
			t.Errorf("proposed %d µs ahead: %d", ahead, f-before)
		}
	}
	for _, ahead := range []int64{3600e6, 1e15, 8e18} {
		if f, before, after := grant(ahead); f < before+1e6 || f > after+1e6 {
			t.Errorf("proposed %d µs ahead: %d after the time before, %d after that afterwards, want a second", ahead, f-before, f-after)
		}
	}
}
