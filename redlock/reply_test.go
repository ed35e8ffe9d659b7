package redlock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// errorReplies are what a node may say instead of doing what it is told.
var errorReplies = []string{
	"READONLY You can't write against a read only replica.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"LOADING Redis is loading the dataset in memory",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOREPLICAS Not enough good replicas to write.",
	"NOAUTH Authentication required.",
	"NOPERM this user has no permissions to run the command",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"MOVED 3999 127.0.0.1:7009",
	"ASK 3999 127.0.0.1:7009",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"CLUSTERDOWN Hash slot not served",
	"EXECABORT Transaction discarded because of previous errors.",
	"ERR max number of clients reached",
	"ERR something that nobody has heard of",
}

// An error is no answer: the key may be there or not. It is not sent again, and
// says nothing about the other operations of the flight.
func TestErrorReplyIsUnknownInTheNodesWords(t *testing.T) {
	for _, text := range errorReplies {
		word, _, _ := strings.Cut(text, " ")
		for command, failing := range map[string][]OpKind{
			"set":     {OpAcquire},
			"evalsha": {OpExtend, OpRelease},
			"get":     {OpInspect},
			"*":       {OpAcquire, OpExtend, OpInspect, OpRelease},
		} {
			t.Run(word+" to "+command, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newRespServer(t, respfake.Options{})
					c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
					mustSend(t, c, acquireOp("held", "t", time.Hour), extendOp("held", "t", time.Hour), releaseOp("w", "t"))
					s.Reply(command, text)
					before := len(s.Log())
					flight := flightOf(acquireOp("a", "t", time.Hour), acquireOp("b", "t", time.Hour),
						extendOp("held", "t", time.Hour), inspectOp("held"), releaseOp("c", "t"), releaseOp("d", "t"))
					err := c.Send(t.Context(), flight)
					// go-redis gives a connection up after these.
					ends := slices.Contains([]string{"READONLY", "MOVED"}, word)
					if !ends && err != nil {
						t.Errorf("the connection ended: %v", err)
					}
					for _, op := range flight {
						r := op.Reply
						if fails := slices.Contains(failing, op.Kind); fails && (r.Vote != quorum.Unknown || r.Err == nil || !strings.Contains(r.Err.Error(), text)) ||
							!fails && (r.Vote == quorum.Unknown || r.Err != nil) {
							t.Errorf("%v: %s", op.Kind, answers(flightOf(*op)))
						}
					}
					want := 6 // GET and PTTL for one inspect, one script for two releases
					if word == "NOPERM" && slices.Contains(failing, OpRelease) {
						want = 8 // and then one for each: the refusal may be about one of the keys
					}
					if n := len(s.Log()) - before; n != want {
						t.Errorf("%d requests for %d", n, want)
					}
					s.Reply(command, "")
					if err == nil {
						mustSend(t, c, acquireOp("after", "t", time.Hour))
					}
					if s.Accepted() != 1 {
						t.Errorf("%d connections", s.Accepted())
					}
				})
			})
		}
	}
}

// Whatever a script may answer that it never should is no vote.
func TestNonsenseIsNoVote(t *testing.T) {
	for name, answer := range map[string]any{
		"too many":   []any{1, 1, 1},
		"too few":    []any{1},
		"none":       []any{},
		"wrong sum":  3,
		"nothing":    nil,
		"negative":   []any{-1, -1},
		"null":       []any{nil, nil},
		"list":       []any{[]any{1}, []any{1}},
		"an error":   errors.New("ERR no"),
		"error each": []any{errors.New("ERR no"), errors.New("ERR no")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, respfake.Options{})
				nonsense := func(*respfake.Tx, []string, []string) any { return answer }
				s.Script(releaseSource, nonsense)
				s.Script(extendSource, nonsense)
				c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
				flight := mustSend(t, c, extendOp("a", "t", time.Hour), extendOp("b", "t", time.Hour), releaseOp("a", "t"), releaseOp("b", "t"))
				for _, op := range flight {
					if r := op.Reply; r.Vote != quorum.Unknown || r.Err == nil {
						t.Errorf("%v: %+v", op.Kind, r)
					}
				}
			})
		})
	}
}
