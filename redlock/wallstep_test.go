package redlock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/quorum"
)

// A node is wiped while A holds it and one of the two others, and its wall clock,
// which its uptime is counted by, is set. It helps nobody to a quorum before A's
// lease has ended: neither a client that knew the process before, nor one that
// comes now, except that such a one has only the uptime to go by.
func TestWipedServerWhoseClockIsSetHelpsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		step    time.Duration
		running bool // set when the server runs again
	}{
		"forward, then it starts": {time.Minute, false},
		"back, then it starts":    {-time.Minute, false},
		"it starts, then forward": {time.Minute, true},
		"it starts, then back":    {-time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redisproc.RequireClock(t)
			for range 3 { // on a busy machine A's lease may end before others try
				if wipedAndStepped(t, c.step, c.running) {
					return
				}
			}
			t.Error("nobody tried while A held: the test shows nothing")
		})
	}
}

// wipedAndStepped reports whether the wiped node was asked in vain while A held.
func wipedAndStepped(t *testing.T, step time.Duration, running bool) (shown bool) {
	servers, nodes := startServers(t, 2)
	wiped := startServer(t, redisproc.Options{SkewedClock: true})
	nodes = append(nodes, wiped.node())
	cfg := Config{TTL: 2 * time.Second, NodeTimeout: 500 * time.Millisecond, MaxTTL: 2 * time.Second, Clock: clock.System{}}

	link := proxyTo(t, servers[0])
	link.Cut()
	a := onServers(t, []Node{Redis(&redis.Options{Addr: link.Addr()}), nodes[1], nodes[2]}, cfg)
	known := onServers(t, nodes, cfg)
	holder, _ := untilGranted(t, a, "other", 2)
	holder.Release(context.Background())
	findOut(known)

	holder, _ = untilGranted(t, a, "k", 2)
	if held := wiped.do(t, "get", "k"); holder.Remaining() > 0 && held != string(holder.Token()) || link.Tally().Refused == 0 {
		t.Fatal("A does not hold two of three")
	}
	if err := wiped.Kill(); err != nil {
		t.Fatal(err)
	}
	set := func() {
		if err := wiped.StepClock(step); err != nil {
			t.Fatal(err)
		}
	}
	if !running {
		set()
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := wiped.Restart(ctx, redisproc.Wipe); err != nil {
		t.Fatal(err)
	}
	if running {
		set()
		awaitStep(t, wiped)
	}
	if off := clockOf(t, wiped) - step; off.Abs() > 30*time.Second || len(wiped.keys(t)) > 0 {
		t.Fatalf("its clock is off by %v, and it has %q", off+step, wiped.keys(t))
	}

	rivals := []*Locker{known}
	if step < 0 || !running { // else see TestStepAfterTheStartDeceivesWhoComesThen
		rivals = append(rivals, onServers(t, nodes, cfg))
	}
	for holder.Remaining() > 0 {
		for _, b := range rivals {
			_, err := b.TryAcquire(context.Background(), "k")
			left := holder.Remaining()
			if left == 0 {
				break
			}
			if err == nil {
				t.Fatalf("granted, and A holds for %v more", left)
			}
			// Where the one that A could not reach grants, it is up to the wiped one.
			var failure *AttemptError
			if errors.As(err, &failure) && len(failure.Votes) > 0 && failure.Votes[0].Vote == quorum.Granted && failure.Votes[2].Quarantined > 0 {
				shown = true
			}
			time.Sleep(5 * time.Millisecond) // what the attempt has left is released
		}
	}
	return shown
}

// What a client that comes after a start cannot know: that the clock was set
// since. The uptime says what the clock does. That is why Redis is to be started
// when the time is set (docs/operations.md).
func TestStepAfterTheStartDeceivesWhoComesThen(t *testing.T) {
	t.Parallel()
	for step, deceived := range map[time.Duration]bool{time.Minute: true, -time.Minute: false} {
		redisproc.RequireClock(t)
		cfg := brief()
		cfg.MaxTTL = 40 * time.Second // longer than it may take to get here
		s := startServer(t, redisproc.Options{SkewedClock: true})
		if err := s.StepClock(step); err != nil {
			t.Fatal(err)
		}
		awaitStep(t, s)
		l := onServers(t, []Node{s.node()}, cfg)
		lease, err := l.TryAcquire(context.Background(), "k")
		var failure *AttemptError
		switch {
		case deceived && err != nil:
			t.Errorf("set forward: %v", err)
		case deceived:
			lease.Release(context.Background())
		case !errors.As(err, &failure) || failure.Votes[0].Quarantined < 30*time.Second:
			t.Errorf("set back: %v", err)
		}
	}
}

// awaitStep waits until a server whose clock has been set by a minute says so of its
// uptime: it looks at the clock now and then.
func awaitStep(t testing.TB, s *realServer) {
	t.Helper()
	eventually(t, "its uptime is wrong", true, func() bool {
		up := uptimeOf(t, s)
		return up >= time.Minute || up < 0
	})
}

// clockOf is how far the server's wall clock is ahead of ours.
func clockOf(t testing.TB, s *realServer) time.Duration {
	t.Helper()
	at, err := s.admin.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}

// uptimeOf is the uptime that INFO says.
func uptimeOf(t testing.TB, s *realServer) time.Duration {
	t.Helper()
	_, text, _ := strings.Cut(s.do(t, "info", "server").(string), "uptime_in_seconds:")
	text, _, _ = strings.Cut(text, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Second
}
