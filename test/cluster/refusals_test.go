package cluster

import (
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// refusal is something that has a node answer clients with an error.
type refusal struct {
	code string // of the error
	// begin has it do so, and returns what ends it.
	begin func(s *scenario, n *nodes.Node) (end func())
}

var (
	readOnly = refusal{code: "READONLY", begin: commands(
		[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})}
	outOfMemory = refusal{code: "OOM", begin: commands(
		[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"})}
	password = refusal{code: "NOAUTH", begin: anotherPassword}
	busy     = refusal{code: "BUSY", begin: endlessScript}
)

// commands has an administrator say one thing at the beginning and one at the end.
func commands(first, last []any) func(*scenario, *nodes.Node) func() {
	return func(s *scenario, n *nodes.Node) func() {
		s.Helper()
		s.must(n.Admin.Do(s.ctx, first...).Err())
		return func() { s.must(n.Admin.Do(s.ctx, last...).Err()) }
	}
}

// anotherPassword has all clients connect anew, since those who have are not asked
// again.
func anotherPassword(s *scenario, n *nodes.Node) func() {
	s.Helper()
	end := commands([]any{"CONFIG", "SET", "requirepass", "another"}, []any{"CONFIG", "SET", "requirepass", ""})(s, n)
	s.must(n.Admin.Do(s.ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	return end
}

// endlessScript keeps a node busy.
func endlessScript(s *scenario, n *nodes.Node) func() {
	s.Helper()
	s.must(n.Admin.ConfigSet(s.ctx, "busy-reply-threshold", "50").Err())
	c := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1, ReadTimeout: -1, PipelinePoolSize: -1})
	done := make(chan error)
	go func() { done <- c.Eval(s.ctx, "while true do end", nil).Err() }()
	return func() {
		eventually(s.T, "the script is ended", func() bool { return n.Admin.ScriptKill(s.ctx).Err() == nil })
		if err := <-done; err == nil || !strings.Contains(err.Error(), "killed") {
			s.Errorf("the script ended with %v", err)
		}
		s.must(c.Close())
	}
}

// refused has two nodes refuse what clients ask of them.
func refused(r refusal) func(*scenario) {
	return func(s *scenario) {
		s.start(4, 2, nil)
		s.progress(20)
		s.refuse(r, s.nodes[:2], func() {
			s.pass(ttl / 2)
			s.progress(50)
		})
		s.progress(20)
		s.end()
	}
}

// refuse has nodes do so while something is done, and sees that they did.
func (s *scenario) refuse(r refusal, which []*nodes.Node, during func()) {
	s.Helper()
	var ends []func()
	for _, n := range which {
		ends = append(ends, r.begin(s, n))
	}
	during()
	for i, n := range which {
		ends[i]()
		var count int
		eventually(s.T, n.Addr()+" has refused something with "+r.code, func() bool {
			var err error
			count, err = n.Refused(s.ctx, r.code)
			return err == nil && count > 0
		})
		s.happened("%d times %s", count, r.code)
	}
}
