package redlock

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/internal/respfake"
)

// What the scripts do is tested on a real server. What stands for them on a
// Redis in memory must pass the same test.
func TestScripts(t *testing.T) {
	t.Run("real server", func(t *testing.T) {
		t.Parallel()
		scriptsWork(t, startServer(t, redisproc.Options{}).admin)
	})
	t.Run("in memory", func(t *testing.T) {
		scriptsWork(t, bystander(t, newRespServer(t, respfake.Options{})))
	})
}

// Times are in seconds and far apart, so that it does not matter how long
// anything takes.
func scriptsWork(t *testing.T, rdb *redis.Client) {
	ctx := context.Background()
	const short, long, longer = "100000", "500000", "900000" // ms
	// prepare leaves the server with these: a and b are t's and short, foreign is
	// another's, list is no string, eternal is t's without expiry, and nothing else.
	prepare := func(t *testing.T) {
		t.Helper()
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.FlushAll(ctx)
			for _, key := range []string{"a", "b"} {
				p.Do(ctx, "set", key, "t", "px", short)
			}
			p.Do(ctx, "set", "foreign", "other", "px", short)
			p.LPush(ctx, "list", "t")
			p.Do(ctx, "set", "eternal", "t")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// state is what the keys are and about how long they have, in 100 s.
	state := func(t *testing.T) string {
		t.Helper()
		var all []string
		for _, key := range []string{"a", "b", "foreign", "list", "eternal", "missing"} {
			kind, err := rdb.Type(ctx, key).Result()
			if err != nil {
				t.Fatal(err)
			}
			left, err := rdb.PTTL(ctx, key).Result()
			if err != nil {
				t.Fatal(err)
			}
			held := ""
			if kind == "string" {
				held = rdb.Get(ctx, key).Val() + " "
			}
			if kind != "none" {
				n := int64(left) // negative: no expiry
				if left > 0 {
					n = int64((left + 50*time.Second) / (100 * time.Second))
				}
				all = append(all, fmt.Sprintf("%s %s%s%d", key, strings.TrimPrefix(kind, "string"), held, n))
			}
		}
		return strings.Join(all, ", ")
	}
	const untouched = "a t 1, b t 1, foreign other 1, list list-1, eternal t -1"
	seventy := func(s string) []string { return slices.Repeat([]string{s}, 70) }
	for _, test := range []struct {
		script OpKind
		name   string
		keys   []string
		args   []string
		want   any
		after  string
		again  any // the same call once more; nil: the same
	}{
		{OpRelease, "own", []string{"a"}, []string{"t"}, int64(1),
			"b t 1, foreign other 1, list list-1, eternal t -1", []any{int64(0)}},
		{OpRelease, "all own", []string{"a", "b"}, []string{"t", "t"}, int64(2),
			"foreign other 1, list list-1, eternal t -1", []any{int64(0), int64(0)}},
		{OpRelease, "another's", []string{"foreign"}, []string{"t"}, []any{"other"}, untouched, nil},
		{OpRelease, "missing", []string{"missing"}, []string{"t"}, []any{int64(0)}, untouched, nil},
		{OpRelease, "list", []string{"list"}, []string{"t"}, []any{int64(0)}, untouched, nil},
		{OpRelease, "no token", []string{"a", "missing"}, []string{"", ""}, []any{"t", int64(0)}, untouched, nil},
		{OpRelease, "almost the token", []string{"a", "a", "a"}, []string{"t ", "T", "t\x00"}, []any{"t", "t", "t"}, untouched, nil},
		{OpRelease, "eternal", []string{"eternal"}, []string{"t"}, int64(1),
			"a t 1, b t 1, foreign other 1, list list-1", []any{int64(0)}},
		{OpRelease, "mixed", []string{"foreign", "a", "missing", "list", "b"}, []string{"t", "t", "t", "t", "x"},
			[]any{"other", int64(1), int64(0), int64(0), "t"}, "b t 1, foreign other 1, list list-1, eternal t -1",
			[]any{"other", int64(0), int64(0), int64(0), "t"}},
		{OpRelease, "one key twice", []string{"a", "a"}, []string{"x", "t"}, []any{"t", int64(1)},
			"b t 1, foreign other 1, list list-1, eternal t -1", []any{int64(0), int64(0)}},
		{OpRelease, "one key many times", seventy("a"), seventy("t"), int64(70),
			"b t 1, foreign other 1, list list-1, eternal t -1", slices.Repeat([]any{int64(0)}, 70)},

		{OpExtend, "own", []string{"a"}, []string{"t", long}, int64(1),
			"a t 5, b t 1, foreign other 1, list list-1, eternal t -1", nil},
		{OpExtend, "all own", []string{"a", "b"}, []string{"t", "t", long, longer}, int64(2),
			"a t 5, b t 9, foreign other 1, list list-1, eternal t -1", nil},
		{OpExtend, "by less", []string{"a"}, []string{"t", "1"}, int64(1), untouched, nil},
		{OpExtend, "by less and more", []string{"a", "b"}, []string{"t", "t", "1", long}, int64(2),
			"a t 1, b t 5, foreign other 1, list list-1, eternal t -1", nil},
		{OpExtend, "another's", []string{"foreign"}, []string{"t", long}, []any{"other"}, untouched, nil},
		{OpExtend, "missing", []string{"missing"}, []string{"t", long}, []any{int64(0)}, untouched, nil},
		{OpExtend, "list", []string{"list"}, []string{"t", long}, []any{int64(0)}, untouched, nil},
		{OpExtend, "no token", []string{"missing"}, []string{"", long}, []any{int64(0)}, untouched, nil},
		{OpExtend, "eternal", []string{"eternal"}, []string{"t", long}, int64(1),
			"a t 1, b t 1, foreign other 1, list list-1, eternal t 5", nil},
		{OpExtend, "mixed", []string{"foreign", "a", "missing", "list", "b"}, []string{"t", "t", "t", "t", "x", long, long, long, long, long},
			[]any{"other", int64(1), int64(0), int64(0), "t"}, "a t 5, b t 1, foreign other 1, list list-1, eternal t -1", nil},
		{OpExtend, "one key twice", []string{"a", "a"}, []string{"t", "t", longer, long}, int64(2),
			"a t 9, b t 1, foreign other 1, list list-1, eternal t -1", nil},
	} {
		t.Run(test.script.String()+" "+test.name, func(t *testing.T) {
			prepare(t)
			var args []any
			for _, a := range test.args {
				args = append(args, a)
			}
			want := test.want
			for range 2 {
				got, err := rdb.Eval(ctx, scripts[test.script].source, test.keys, args...).Result()
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("it answers %#v, want %#v", got, want)
				}
				if got := state(t); got != test.after {
					t.Errorf("it leaves %s\nwant %s", got, test.after)
				}
				if test.again != nil {
					want = test.again
				}
			}
		})
	}
}
