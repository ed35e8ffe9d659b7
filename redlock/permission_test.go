package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/quorum"
)

// needed is every command that a node's user must be permitted, and forFences what
// else with fences. useful makes connections that end take less traffic with it,
// or lets the node vote without Config.AllowUnidentified. Where INFO is not
// permitted, ping is needed in its place.
var (
	needed    = []string{"+set", "+get", "+mget", "+pttl", "+pexpire", "+del", "+eval", "+evalsha"}
	forFences = []string{"+time", "+exists"}
	useful    = []string{"+info", "+client|id", "+client|kill"}
	ping      = "+ping"
)

// permit makes the user of the lock one who may run these commands on the keys
// of the lock and nothing else. The rest is denied to everybody but the admin,
// who is in already.
func (s *realServer) permit(t testing.TB, commands ...string) {
	t.Helper()
	s.options.Username, s.options.Password = "locker", "pw"
	args := []any{"acl", "setuser", "locker", "reset", "on", ">pw", "~*"}
	for _, c := range commands {
		args = append(args, c)
	}
	s.do(t, args...)
	s.do(t, "config", "set", "requirepass", "nobody-knows")
}

// Of the commands that the documentation lists none can be left out.
func TestEveryNeededCommandIsNeeded(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	eachIsNeeded(t, needed, func(t *testing.T, commands []string) []error { return missing(t, s, commands) })
}

// With fences two more are needed, and no fewer of the others.
func TestFencesNeedTheirCommands(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	eachIsNeeded(t, slices.Concat(needed, forFences), func(t *testing.T, commands []string) []error {
		return append(missing(t, s, commands), missingFences(t, s, commands)...)
	})
}

// eachIsNeeded checks that nothing is missing with the commands, with what is
// useful and without, and something without any one of them.
func eachIsNeeded(t *testing.T, commands []string, missing func(t *testing.T, commands []string) []error) {
	t.Helper()
	all := slices.Concat(commands, useful)
	if missed := missing(t, all); missed != nil {
		t.Errorf("more is needed: %v", missed)
	}
	if missed := missing(t, append(slices.Clone(commands), ping)); missed != nil {
		t.Errorf("more is needed without what is useful: %v", missed)
	}
	for _, command := range commands {
		without := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == command })
		missed := missing(t, without)
		name := strings.TrimPrefix(command, "+")
		if !slices.ContainsFunc(missed, saysSo) {
			t.Errorf("%s can be left out, or its lack is not told: %v", name, missed)
		}
	}
	for _, command := range useful {
		without := append(slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == command }), ping)
		if missed := missing(t, without); missed != nil {
			t.Errorf("without %s: %v", command, missed)
		}
	}
	if missed := missing(t, commands); !slices.ContainsFunc(missed, saysSo) {
		t.Errorf("without INFO and PING: %v", missed)
	}
}

// Two options of a node need a command more each. Where that is denied there is no
// connection, and the reason is told.
func TestOptionsNeedTheirCommands(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	for command, set := range map[string]func(o *redis.Options){
		"+select":         func(o *redis.Options) { o.DB = 3 },
		"+client|setname": func(o *redis.Options) { o.ClientName = "me" },
	} {
		for _, others := range [][]string{append(slices.Clone(needed), ping), slices.Concat(needed, useful)} {
			s.options = redis.Options{Addr: s.Addr()}
			set(&s.options)
			if missed := missing(t, s, others); len(missed) != 1 || !saysSo(missed[0]) {
				t.Errorf("%s can be left out, or its lack is not told at once: %v", command, missed)
			}
			if missed := missing(t, s, append(slices.Clone(others), command)); missed != nil {
				t.Errorf("more is needed than %s: %v", command, missed)
			}
		}
	}
}

// saysSo reports whether err is about permissions, in the words of a version or
// another for commands and for scripts.
func saysSo(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "ACL failure in script", "can't run this command"}, func(words string) bool {
		return strings.Contains(err.Error(), words)
	})
}

// missing does everything a connection can do as a user who may run these
// commands, and returns what did not work.
func missing(t *testing.T, s *realServer, commands []string) (missed []error) {
	t.Helper()
	s.permit(t, commands...)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	old, err := s.node().Connect(ctx, hang)
	if err != nil {
		return []error{err}
	}
	defer old.Close()
	c, err := s.node().Connect(ctx, hang)
	if err != nil {
		return []error{err}
	}
	defer c.Close()
	may := func(command string) bool { return slices.Contains(commands, command) }
	if p := c.Peer(); (p.ID != 0) != may("+client|id") || (p.RunID != "") != may("+info") {
		t.Errorf("with %v the peer is %+v", commands, p)
	}
	if old.Peer().ID != 0 {
		if err := c.Kill(ctx, old.Peer().ID); (err == nil) != may("+client|kill") || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("with %v: kill: %v", commands, err)
		}
	}
	s.do(t, "flushall")
	for range 2 {
		s.do(t, "script", "flush")
		for _, flight := range [][]*Op{
			nil,
			flightOf(acquireOp("a", "t", time.Minute), acquireOp("b", "t", time.Minute)),
			flightOf(extendOp("a", "t", time.Hour), extendOp("b", "t", time.Hour), inspectOp("a")),
			flightOf(extendOp("a", "t", time.Hour), releaseOp("a", "t"), releaseOp("b", "t")),
		} {
			if err := c.Send(ctx, flight); err != nil {
				missed = append(missed, fmt.Errorf("flight: %w", err))
			}
			for _, op := range flight {
				if op.Reply.Vote != quorum.Granted {
					missed = append(missed, fmt.Errorf("%v: %v: %w", op.Kind, op.Reply.Vote, op.Reply.Err))
				}
			}
		}
	}
	return missed
}

// A key that the node refuses to this user is the answer for that key, not for
// those of other callers that travel with it. Redis checks all the keys of a
// script against the user's patterns before it runs it.
func TestAKeyThatIsNotPermittedDoesNotSpoilOthers(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	s.permit(t, slices.Concat(needed, useful, []string{"resetkeys", "~ours:*"})...)
	c := dialConn(t, s.node(), hang)
	for _, scripted := range []string{"unknown", "known"} { // to the node
		s.do(t, "set", "theirs", "t")
		for _, step := range []struct {
			what   string
			flight []*Op
			one    string // what one of ours is answered
		}{
			{"acquire", mustSend(t, c, acquireOp("ours:1", "t", time.Minute), acquireOp("theirs", "t", time.Minute), acquireOp("ours:2", "t", time.Minute)), "granted"},
			{"extend", mustSend(t, c, extendOp("ours:1", "t", time.Hour), extendOp("theirs", "t", time.Hour), extendOp("ours:2", "t", time.Hour)), "granted"},
			{"inspect", mustSend(t, c, inspectOp("ours:1"), inspectOp("theirs"), inspectOp("ours:2")), "granted(t)"},
			{"release", mustSend(t, c, releaseOp("ours:1", "t"), releaseOp("theirs", "t"), releaseOp("ours:2", "t")), "granted"},
		} {
			for i, op := range step.flight {
				got := answers(flightOf(*op))
				if theirs := i == 1; !theirs && got != step.one || theirs && !strings.Contains(got, "NOPERM") {
					t.Errorf("scripts %s: %s of %q: %s", scripted, step.what, op.Key, got)
				}
			}
		}
		if left := s.keys(t); !slices.Equal(left, []string{"theirs"}) {
			t.Errorf("scripts %s: the server holds %q", scripted, left)
		}
	}
}

// missingFences does what there is to do with fences as a user who may run these
// commands, and returns what did not work.
func missingFences(t *testing.T, s *realServer, commands []string) (missed []error) {
	t.Helper()
	s.permit(t, commands...)
	s.do(t, "flushall")
	s.do(t, "script", "flush")
	c, err := s.node().Connect(context.Background(), hang)
	if err != nil {
		return []error{err}
	}
	defer c.Close()
	now := micros()
	for _, op := range []Op{
		fencedOp(acquireOp("f", "t", time.Minute), now), stampOp("f", "t", now+1), fencedOp(extendOp("f", "t", time.Hour), 0), releaseOp("f", "t"),
		fencedOp(acquireOp("f", "t", time.Minute), now),
	} {
		if got := mustSend(t, c, op)[0].Reply; got.Vote != quorum.Granted {
			missed = append(missed, fmt.Errorf("%v with a fence: %v: %w", op.Kind, got.Vote, got.Err))
		}
	}
	return missed
}

// A member of a cluster says how many nodes that has only to a user who may ask.
func TestClusterMemberIsAVoterIfItMaySaySo(t *testing.T) {
	t.Parallel()
	s := startClusterMember(t)
	all := slices.Concat(needed, useful)
	s.permit(t, all...)
	l := onServers(t, []Node{s.node()}, Config{})
	if _, err := l.TryAcquire(context.Background(), "k"); !errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), "CLUSTER INFO") {
		t.Errorf("without +cluster|info: %v", err)
	}
	cycle(t, onServers(t, []Node{s.node()}, patient()), "k") // allows it
	s.permit(t, append(all, "+cluster|info")...)
	cfg := patient()
	cfg.AllowUnidentified = false
	cycle(t, onServers(t, []Node{s.node()}, cfg), "k")
}
