package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

func TestCounterIsNamedAfterItsLock(t *testing.T) {
	for _, test := range []struct{ key, want string }{ // "" for a key that is refused
		{"k", "k:fence:{k}"},
		{"lock:stock:42", "lock:stock:42:fence:{lock:stock:42}"},
		{":fence", ":fence:fence:{:fence}"},
		{"k:fence", "k:fence:fence:{k:fence}"},
		{":fence:", ":fence::fence:{:fence:}"},
		{"a b\r\n\x00\xff", "a b\r\n\x00\xff:fence:{a b\r\n\x00\xff}"},
		{"{a}", "{a}:fence"},
		{"{user}:cart", "{user}:cart:fence"},
		{"x{a}", "x{a}:fence"},
		{"{a}{b}", "{a}{b}:fence"},
		{"{{a}}", "{{a}}:fence"},
		{"{a}{", "{a}{:fence"},
		{"}{a}", "}{a}:fence"},
		{"{a}}", "{a}}:fence"},
		{"{:fence}", "{:fence}:fence"},
		{"a{b:fence:{a{b}", "a{b:fence:{a{b}:fence"}, // its first half could not be locked
		{"k:fence:{j}", "k:fence:{j}:fence"},

		{"{", ""},
		{"}", ""},
		{"{}", ""},
		{"}{", ""},
		{"a}b{", ""},
		{"}{x", ""},
		{"a{b", ""},
		{"{}{a}", ""}, // the first braces decide
		{"x{}y{a}", ""},
		{"k:fence:{k}", ""}, // the counter of k
		{":fence:fence:{:fence}", ""},
		{"{a}:fence", ""}, // the counter of {a}
		{"{a}:fence:fence", ""},
	} {
		err := checkFenced(test.key)
		switch {
		case test.want == "" && !errors.Is(err, ErrInvalid):
			t.Errorf("%q: %v, want ErrInvalid", test.key, err)
		case test.want == "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", test.key)):
			t.Errorf("the error does not name %q: %v", test.key, err)
		case test.want != "" && (err != nil || counterOf(test.key) != test.want):
			t.Errorf("%q: %q, %v, want %q", test.key, counterOf(test.key), err, test.want)
		}
	}
}

// A key without a counter is refused before anything is sent, and only where
// there are fences.
func TestKeyThatCanHaveNoCounterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		plain, fenced := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{Fenced: true})
		tagged := newLocker(t, nodes, Config{Fenced: true, KeyPrefix: "{app}:"})
		colliding := newLocker(t, nodes, Config{Fenced: true, KeyPrefix: "k:fence:"})
		do := func(context.Context, *Lease) error { return nil }
		for _, key := range []string{"{}", "a}b{", "}{x", "a{b", "k:fence:{k}", "{a}:fence"} {
			_, try := fenced.TryAcquire(t.Context(), key)
			_, wait := fenced.Acquire(t.Context(), key)
			for _, err := range []error{try, wait, fenced.Do(t.Context(), key, do)} {
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%q: %v, want ErrInvalid", key, err)
				}
			}
			err := tagged.Do(t.Context(), key, do)
			if counter := strings.HasSuffix(key, fenceMark); err != nil && !counter || err == nil && counter {
				t.Errorf("%q with a tag before it: %v", key, err)
			}
		}
		if err := colliding.Do(t.Context(), "{k}", do); !errors.Is(err, ErrInvalid) {
			t.Errorf("a counter's name, half of which is the prefix: %v, want ErrInvalid", err)
		}
		for _, n := range mem {
			for _, op := range n.history() {
				if !strings.HasPrefix(op.Key, "{app}:") {
					t.Errorf("%v of %q was sent", op.Kind, op.Key)
				}
			}
		}
		for _, key := range []string{"{}", "k:fence:{k}"} {
			if err := plain.Do(t.Context(), key, do); err != nil {
				t.Errorf("%q without fences: %v", key, err)
			}
		}
	})
}

// slotted is the part of a key that a server hashes, by the loop in its source.
func slotted(key string) string {
	for s := 0; s < len(key); s++ {
		if key[s] != '{' {
			continue
		}
		for e := s + 1; e < len(key); e++ {
			if key[e] == '}' {
				if e == s+1 {
					return key
				}
				return key[s+1 : e]
			}
		}
		return key
	}
	return key
}

// randomKey is made of what matters in a counter's name.
func randomKey(draw *rand.Rand) string {
	var b strings.Builder
	for range 1 + draw.IntN(7) {
		b.WriteString([]string{"{", "}", "a", "b", ":", ":fence", ":fence:{", "fence"}[draw.IntN(8)])
	}
	key := b.String()
	if draw.IntN(4) == 0 {
		key = counterOf(key)
	}
	return key
}

func TestNoTwoKeysShareACounter(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	of := map[string]string{}
	var allowed []string
	for range 100000 {
		key := randomKey(draw)
		if checkFenced(key) != nil {
			continue
		}
		counter := counterOf(key)
		if other, taken := of[counter]; taken && other != key {
			t.Errorf("%q counts for %q and for %q", counter, other, key)
		}
		of[counter] = key
		allowed = append(allowed, key)
	}
	for _, key := range allowed {
		if other, taken := of[key]; taken {
			t.Errorf("%q is allowed, and is the counter of %q", key, other)
		}
	}
	if len(of) < 1000 {
		t.Errorf("only %d keys: the test shows little", len(of))
	}
}

// In cluster mode a script's keys must be in one slot.
//
// field-reports: 118
func TestCounterIsInItsLocksSlot(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		oneSlotEach(t, bystander(t, newRespServer(t, respfake.Options{Cluster: true})))
	})
	t.Run("real server", func(t *testing.T) {
		t.Parallel()
		oneSlotEach(t, startClusterMember(t).admin)
	})
}

func oneSlotEach(t *testing.T, rdb *redis.Client) {
	ctx := context.Background()
	draw := rand.New(rand.NewPCG(3, 4))
	slots := map[int64]bool{}
	for range 20 {
		var keys []string
		var answers []*redis.IntCmd
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for len(keys) < 100 {
				if key := randomKey(draw); checkFenced(key) == nil {
					keys = append(keys, key)
					answers = append(answers, p.ClusterKeySlot(ctx, key), p.ClusterKeySlot(ctx, counterOf(key)))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			lock, counter := answers[2*i].Val(), answers[2*i+1].Val()
			if lock != counter {
				t.Errorf("%q is in slot %d, its counter %q in %d", key, lock, counterOf(key), counter)
			}
			slots[lock] = true
		}
	}
	if len(slots) < 20 {
		t.Errorf("only %d slots: the test shows little", len(slots))
	}
}

func FuzzCounter(f *testing.F) {
	for _, key := range []string{"k", "{a}", "{a}:fence", "k:fence:{k}", "a}b{", "a{b:fence:{a{b}", "{}{a}"} {
		f.Add(key, "k")
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		if key == "" || other == "" {
			t.Skip() // refused elsewhere
		}
		refused := strings.ContainsAny(key, "{}") && slotted(key) == key
		for i := range key {
			refused = refused || i > 0 && counterOf(key[:i]) == key
		}
		err := checkFenced(key)
		if (err != nil) != refused {
			t.Fatalf("%q: %v, want an error: %v", key, err, refused)
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", key, err)
			}
			return
		}
		counter := counterOf(key)
		if !strings.HasPrefix(counter, key) {
			t.Errorf("the counter of %q is %q: whoever may use keys by their beginning may not use it", key, counter)
		}
		if slotted(counter) != slotted(key) {
			t.Errorf("%q hashes %q, its counter %q", key, slotted(key), slotted(counter))
		}
		if checkFenced(counter) == nil {
			t.Errorf("%q may be locked, and is the counter of %q", counter, key)
		}
		if checkFenced(other) == nil && other != key && counterOf(other) == counter {
			t.Errorf("%q and %q have one counter, %q", key, other, counter)
		}
	})
}
