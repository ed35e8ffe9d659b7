package redlock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// field-reports: 118
func TestFencesWorkOnEveryKindOfServer(t *testing.T) {
	for name, start := range kindsOfServer {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			if s.options.Username != "" {
				s.do(t, "acl", "setuser", s.options.Username, forFences[0], forFences[1])
			}
			cfg := patient()
			cfg.Fenced = true
			nodes := []Node{s.node()}
			l, rival := onServers(t, nodes, cfg), onServers(t, nodes, cfg)
			for _, key := range []string{"k", "{a}b", "x{a}", "a\r\nb"} {
				wholeCycle(t, l, rival, key)
			}
			var wg sync.WaitGroup
			for w := range 32 {
				wg.Go(func() { wholeCycle(t, l, rival, fmt.Sprint("k", w)) })
			}
			wg.Wait()
			for _, key := range s.keys(t) {
				f, err := strconv.ParseInt(s.do(t, "get", key).(string), 10, 64)
				if !strings.Contains(key, fenceMark) || err != nil || !fence.Token(f).Valid() {
					t.Errorf("left: %q: %d, %v", key, f, err)
				}
			}
			if n := len(s.keys(t)); n != 4+32 {
				t.Errorf("%d counters", n)
			}
			manyFences(t, dialConn(t, s.node(), hang), func(key string) string { return s.do(t, "get", key).(string) })
		})
	}
}

// wipeTeams is how many teams share the rounds in which nodes lose what they have.
// They mostly wait for quarantines to end: FENCE_TEAMS=1 has one team go through all
// of them, 400 in six minutes.
func wipeTeams(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FENCE_TEAMS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("FENCE_TEAMS is %q: want a number of teams", text)
	}
	return n
}

// fenceRounds is how many grants the tests below see, in all.
func fenceRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FENCE_ROUNDS")
	if text == "" {
		return 40
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("FENCE_ROUNDS is %q: want a number of rounds", text)
	}
	return n
}

// Grants of one key, one after another, by two clients of which each sees five
// nodes through a network of its own, and one has a clock that is late. Before each
// grant another pair of nodes is out of reach.
//
// field-reports: 8
func TestFencesRiseWhateverNodesAreOutOfReach(t *testing.T) {
	t.Parallel()
	cfg := patient()
	cfg.Fenced = true
	total := fenceRun(t, fenceWorld{cfg: cfg, late: time.Hour, teams: 1})
	if total.refused > 0 {
		t.Errorf("%d grants were refused", total.refused)
	}
}

// The same, and one node after another loses all it has. That may cost grants
// while it is in quarantine.
//
// field-reports: 8
func TestFencesRiseWhateverNodesForgetThem(t *testing.T) {
	t.Parallel()
	cfg := Config{Fenced: true, TTL: 900 * time.Millisecond, MaxTTL: 900 * time.Millisecond, NodeTimeout: 225 * time.Millisecond}
	total := fenceRun(t, fenceWorld{cfg: cfg, late: 400 * time.Millisecond, wipes: true, teams: wipeTeams(t)})
	if total.wiped == 0 {
		t.Error("no node was wiped: the test shows nothing")
	}
}
