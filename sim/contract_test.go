package sim

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/redlock"
)

// What a node does is in Lua, and again in Go for the nodes of the world. One table
// holds both, so that neither is a world of its own.
func TestNodesKeepTheContract(t *testing.T) {
	t.Run("simulated", func(t *testing.T) { keepsContract(t, &simulated{data: newData()}) })
	t.Run("redis-server", func(t *testing.T) { keepsContract(t, startReal(t, 0)) }) // or what REDIS_SERVER names
	t.Run("redis-server, RESP 3", func(t *testing.T) { keepsContract(t, startReal(t, 3)) })
	t.Run("valkey-server", func(t *testing.T) {
		path, err := exec.LookPath("valkey-server")
		if err != nil && os.Getenv("CI") == "true" {
			t.Fatalf("it is required here: %v", err)
		} else if err != nil {
			t.Skip(err)
		}
		t.Setenv("REDIS_SERVER", path)
		keepsContract(t, startReal(t, 0))
	})
}

// subject is a node under the contract. Times are in units of 100 s, so that it does
// not matter how long anything takes.
type subject interface {
	// prepare leaves the node with these keys and nothing else, each with its counter
	// where a number is given.
	prepare(t *testing.T, keys []prepared)
	send(t *testing.T, flight []*redlock.Op)
	// state is what a key holds and how long it has, and its counter.
	state(t *testing.T, name string) string
	wall() time.Time
}

const unit = 100 * time.Second

// prepared is a key before an operation.
type prepared struct {
	name  string
	token string // "[]" is a list, "" no key
	units int    // 0: for ever
	count string // "": no counter
}

var before = []prepared{
	{"mine", "t", 1, "50"},
	{"long", "t", 6, "50"},
	{"bare", "t", 1, ""},
	{"foreign", "other", 1, "50"},
	{"list", "[]", 0, "50"},
	{"eternal", "t", 0, "50"},
	{"free", "", 0, "50"},
	{"new", "", 0, ""},
	{"broken", "", 0, "x"},
	{"mineBroken", "t", 1, "x"},
	{"full", "", 0, "9007199254740991"},
}

const far = fence.Token(1 << 52) // beyond any clock

func keepsContract(t *testing.T, s subject) {
	acquire := func(key string, f fence.Token) redlock.Op {
		return redlock.Op{Kind: redlock.OpAcquire, Key: key, Token: "t", TTL: 5 * unit, Fence: f}
	}
	of := func(kind redlock.OpKind, key string) redlock.Op {
		return redlock.Op{Kind: kind, Key: key, Token: "t", TTL: 5 * unit}
	}
	stamp := func(key string, f fence.Token) redlock.Op {
		return redlock.Op{Kind: redlock.OpStamp, Key: key, Token: "t", Fence: f}
	}
	for _, test := range []struct {
		op     redlock.Op
		fenced bool
		want   string // the answer
		after  string // "": as before
		again  string // the answer to the same once more; "": the same
	}{
		{acquire("new", 0), false, "granted", "t 5", ""},
		{acquire("mine", 0), false, "granted", "", ""},
		{acquire("foreign", 0), false, "denied other", "", ""},
		{acquire("list", 0), false, "denied error", "", ""},
		{acquire("eternal", 0), false, "granted", "", ""},
		{of(redlock.OpExtend, "mine"), false, "granted", "t 5 count 50", ""},
		{of(redlock.OpExtend, "long"), false, "granted", "t 6 count 50", ""},
		{of(redlock.OpExtend, "foreign"), false, "denied other", "", ""},
		{of(redlock.OpExtend, "new"), false, "denied", "", ""},
		{of(redlock.OpExtend, "list"), false, "denied", "", ""},
		{of(redlock.OpExtend, "eternal"), false, "granted", "t 5 count 50", ""},
		{of(redlock.OpRelease, "mine"), false, "granted", "- count 50", "denied"},
		{of(redlock.OpRelease, "foreign"), false, "denied other", "", ""},
		{of(redlock.OpRelease, "list"), false, "denied", "", ""},
		{of(redlock.OpRelease, "new"), false, "denied", "", ""},
		{of(redlock.OpInspect, "mine"), false, "granted t 1", "", ""},
		{of(redlock.OpInspect, "foreign"), false, "granted other 1", "", ""},
		{of(redlock.OpInspect, "new"), false, "denied", "", ""},

		{acquire("new", 70), true, "granted 70", "t 5 count 70", ""},
		{acquire("free", 70), true, "granted 70", "t 5 count 70", ""},
		{acquire("free", 50), true, "granted 51", "t 5 count 51", ""},
		{acquire("free", 3), true, "granted 51", "t 5 count 51", ""},
		{acquire("free", far), true, "granted clamped", "t 5 count clamped", ""},
		{acquire("mine", 70), true, "granted 50", "", ""},
		{acquire("foreign", 70), true, "denied other", "", ""},
		{acquire("list", 70), true, "denied error", "", ""},
		{acquire("bare", 70), true, "unknown error", "", ""},
		{acquire("broken", 70), true, "unknown error", "", ""},
		{acquire("mineBroken", 70), true, "unknown error", "", ""},
		{acquire("full", 70), true, "unknown error", "", ""},
		{stamp("mine", 60), true, "granted", "t 1 count 60", ""},
		{stamp("mine", 50), true, "granted", "", ""},
		{stamp("mine", 49), true, "denied", "", ""},
		{stamp("foreign", 60), true, "denied other", "", ""},
		{stamp("free", 60), true, "denied", "", ""},
		{stamp("list", 60), true, "denied", "", ""},
		{stamp("bare", 60), true, "unknown error", "", ""},
		{stamp("mineBroken", 60), true, "unknown error", "", ""},
		{of(redlock.OpExtend, "mine"), true, "granted", "t 5 count 50 kept", ""},
		{of(redlock.OpExtend, "long"), true, "granted", "t 6 count 50 kept", ""},
		{of(redlock.OpExtend, "bare"), true, "granted", "t 5", ""},
		{of(redlock.OpExtend, "foreign"), true, "denied other", "", ""},
		{of(redlock.OpRelease, "mine"), true, "granted", "- count 50", "denied"},
	} {
		name := fmt.Sprint(test.op.Kind, " ", test.op.Key, " ", test.op.Fence)
		if test.fenced {
			name += " fenced"
			test.op.Counter, test.op.CounterTTL = test.op.Key+":c", 9*unit
		}
		t.Run(name, func(t *testing.T) {
			s.prepare(t, before)
			was := s.state(t, test.op.Key)
			want := test.want
			for range 2 {
				op := test.op
				s.send(t, []*redlock.Op{&op})
				if got := answer(s, op); got != want {
					t.Errorf("it answers %q, want %q", got, want)
				}
				after := test.after
				if after == "" {
					after = strings.TrimSuffix(was, " kept")
				}
				got := s.state(t, test.op.Key)
				if !strings.HasSuffix(after, " kept") {
					got = strings.TrimSuffix(got, " kept")
				}
				if got != after {
					t.Errorf("it leaves %q, want %q", got, after)
				}
				if test.again != "" {
					want = test.again
				}
			}
		})
	}
	t.Run("a flight", func(t *testing.T) {
		s.prepare(t, before)
		// It is sent in the order of its kinds; of a key whose release is in it nothing
		// comes afterwards.
		flight := []redlock.Op{
			acquire("new", 70), acquire("free", 70), acquire("foreign", 70),
			stamp("new", 80), stamp("mine", 80), of(redlock.OpExtend, "mine"), of(redlock.OpExtend, "free"),
			of(redlock.OpRelease, "free"), of(redlock.OpRelease, "foreign"), of(redlock.OpRelease, "bare"),
		}
		var ops []*redlock.Op
		for i := range flight {
			flight[i].Counter, flight[i].CounterTTL = flight[i].Key+":c", 9*unit
			ops = append(ops, &flight[i])
		}
		s.send(t, ops)
		var got []string
		for _, op := range flight {
			got = append(got, answer(s, op))
		}
		want := "granted 70; granted 70; denied other; granted; granted; granted; granted; granted; denied other; granted"
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("it answers %s\nwant %s", got, want)
		}
		for name, want := range map[string]string{
			"new": "t 5 count 80 kept", "free": "- count 70 kept", "mine": "t 5 count 80 kept", "bare": "-", "foreign": "other 1 count 50",
		} {
			if got := s.state(t, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	})
}

// answer is a reply in words.
func answer(s subject, op redlock.Op) string {
	words := []string{op.Reply.Vote.String()}
	if op.Reply.Holder != "" {
		words = append(words, string(op.Reply.Holder))
	}
	if op.Reply.Fence != 0 {
		words = append(words, count(s, op.Reply.Fence))
	}
	if op.Reply.Remaining != 0 {
		words = append(words, units(op.Reply.Remaining))
	}
	if op.Reply.Err != nil {
		words = append(words, "error")
	}
	return strings.Join(words, " ")
}

// count is a counter, or "clamped" if it is a second ahead of the node's clock.
func count(s subject, f fence.Token) string {
	if d := int64(f) - s.wall().UnixMicro(); d > -60e6 && d <= 1e6 {
		return "clamped"
	}
	return f.String()
}

func units(d time.Duration) string { return fmt.Sprint(int64((d + unit/2) / unit)) }

// described is a key's state in words.
func described(s subject, token string, left time.Duration, counter fence.Token, broken bool, kept time.Duration) string {
	if token == "" {
		token = "-"
	} else if left > 0 {
		token += " " + units(left)
	}
	switch {
	case broken:
		token += " count x"
	case counter != 0:
		token += " count " + count(s, counter)
		if kept > 8*unit { // by 9 units, not by 7
			token += " kept"
		}
	}
	return token
}
