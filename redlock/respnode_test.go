package redlock

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// newRespServer is a Redis in memory that knows the scripts, for bubbles. It is
// closed with the test.
func newRespServer(t testing.TB, o respfake.Options) *respfake.Server {
	t.Helper()
	s := respfake.New(o)
	t.Cleanup(s.Close)
	s.SetInfo("uptime_in_seconds", "1000000") // long enough not to be quarantined
	s.Script(acquireSource, acquireInGo)
	s.Script(stampSource, stampInGo)
	s.Script(releaseSource, releaseInGo)
	s.Script(extendSource, extendInGo)
	return s
}

// respOptions are the options of a client of s, the ith of its test.
func respOptions(s *respfake.Server, i int) *redis.Options {
	return &redis.Options{Addr: fmt.Sprint("127.0.0.1:", 7001+i), Dialer: s.Dialer()}
}

// respNodes are n nodes with a Redis in memory each.
func respNodes(t testing.TB, n int, o respfake.Options) ([]*respfake.Server, []Node) {
	t.Helper()
	var servers []*respfake.Server
	var nodes []Node
	for i := range n {
		s := newRespServer(t, o)
		servers = append(servers, s)
		nodes = append(nodes, Redis(respOptions(s, i)))
	}
	return servers, nodes
}

// releaseInGo is release.lua.
func releaseInGo(tx *respfake.Tx, keys, argv []string) any {
	ours, answer := compare(tx, keys, argv)
	tx.Del(ours...)
	if len(ours) == len(keys) {
		return len(ours)
	}
	return answer
}

// acquireInGo is acquire.lua.
func acquireInGo(tx *respfake.Tx, keys, argv []string) any {
	outlives, _ := strconv.Atoi(argv[len(argv)-1])
	var answer []any
	for i := range len(keys) / 2 {
		lock, counter, argv := keys[2*i], keys[2*i+1], argv[3*i:]
		held := tx.MGet(lock)[0]
		count, ok := counted(tx, counter)
		ttl, _ := strconv.Atoi(argv[1])
		proposed, _ := strconv.ParseInt(argv[2], 10, 64)
		switch {
		case held != nil && held != argv[0]:
			answer = append(answer, held)
		case !ok, held != nil && count == 0:
			answer = append(answer, -1)
		case held != nil:
			answer = append(answer, count)
		case tx.Set(lock, argv[0], respfake.SetOptions{NX: true, TTL: time.Duration(ttl) * time.Millisecond}):
			count = max(count+1, min(proposed, time.Now().Add(time.Second).UnixMicro()))
			tx.Set(counter, strconv.FormatInt(count, 10), respfake.SetOptions{TTL: time.Duration(outlives) * time.Millisecond})
			answer = append(answer, count)
		default:
			answer = append(answer, 0)
		}
	}
	return answer
}

// stampInGo is stamp.lua.
func stampInGo(tx *respfake.Tx, keys, argv []string) any {
	outlives, _ := strconv.Atoi(argv[len(argv)-1])
	var answer []any
	for i := range len(keys) / 2 {
		lock, counter, argv := keys[2*i], keys[2*i+1], argv[2*i:]
		held := tx.MGet(lock)[0]
		count, small := counted(tx, counter)
		text, _ := tx.MGet(counter)[0].(string)
		fence, _ := strconv.ParseInt(argv[1], 10, 64)
		switch {
		case held == nil:
			answer = append(answer, 0)
		case held != argv[0]:
			answer = append(answer, held)
		case text == "", strings.Trim(text, "0123456789") != "":
			answer = append(answer, -1)
		case !small, count > fence:
			answer = append(answer, 0)
		default:
			tx.Set(counter, argv[1], respfake.SetOptions{TTL: time.Duration(outlives) * time.Millisecond})
			answer = append(answer, 1)
		}
	}
	return answer
}

// counted is what a counter says: 0 if there is none, false if it is no number.
func counted(tx *respfake.Tx, counter string) (int64, bool) {
	text, isText := tx.MGet(counter)[0].(string)
	if !isText {
		return 0, tx.Type(counter) == "none"
	}
	n, err := strconv.ParseUint(text, 10, 53)
	return int64(n), err == nil && n < 1<<53-1
}

// extendInGo is extend.lua.
func extendInGo(tx *respfake.Tx, keys, argv []string) any {
	n := len(argv) / 2
	locks, counters := keys[:n], keys[n:]
	ours, answer := compare(tx, locks, argv)
	for i, key := range locks {
		ttl, err := strconv.ParseInt(argv[n+i], 10, 64)
		if err != nil {
			return err
		}
		if answer[i] == 1 && tx.PTTL(key) < ttl {
			tx.PExpire(key, ttl)
		}
		if answer[i] == 1 && len(counters) > 0 {
			text, _ := tx.MGet(counters[i])[0].(string)
			if _, err := strconv.ParseUint(text, 10, 53); err == nil {
				ms, _ := strconv.ParseInt(argv[2*n], 10, 64)
				tx.PExpire(counters[i], ms)
			}
		}
	}
	if len(ours) == n {
		return n
	}
	return answer
}

// compare is what both scripts begin with.
func compare(tx *respfake.Tx, keys, tokens []string) (ours []string, answer []any) {
	for i, held := range tx.MGet(keys...) {
		switch held {
		case tokens[i]:
			ours = append(ours, keys[i])
			answer = append(answer, 1)
		case nil:
			answer = append(answer, 0)
		default:
			answer = append(answer, held)
		}
	}
	return ours, answer
}

// dialConn is a connection to n. It ends with the test.
func dialConn(t testing.TB, n Node, limit time.Duration) Conn {
	t.Helper()
	c, err := n.Connect(context.Background(), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// connLimit is the limit of a connection whose limit does not matter.
const connLimit = 5 * time.Second

// flightOf is a flight of these operations.
func flightOf(ops ...Op) []*Op {
	flight := make([]*Op, len(ops))
	for i := range ops {
		flight[i] = &ops[i]
	}
	return flight
}

// mustSend sends a flight that the connection must survive.
func mustSend(t testing.TB, c Conn, ops ...Op) []*Op {
	t.Helper()
	flight := flightOf(ops...)
	if err := c.Send(context.Background(), flight); err != nil {
		t.Fatal(err)
	}
	return flight
}

func acquireOp(key string, token Token, ttl time.Duration) Op {
	return Op{Kind: OpAcquire, Key: key, Token: token, TTL: ttl}
}

func extendOp(key string, token Token, ttl time.Duration) Op {
	return Op{Kind: OpExtend, Key: key, Token: token, TTL: ttl}
}

func inspectOp(key string) Op { return Op{Kind: OpInspect, Key: key} }

func releaseOp(key string, token Token) Op { return Op{Kind: OpRelease, Key: key, Token: token} }

// answers are the replies of a flight, one word each: the vote, or who holds the
// key, or what is wrong.
func answers(flight []*Op) string {
	var words []string
	for _, op := range flight {
		switch r := op.Reply; {
		case r.Err != nil:
			words = append(words, fmt.Sprintf("%v(%v)", r.Vote, r.Err))
		case r.Holder != "":
			words = append(words, fmt.Sprintf("%v(%s)", r.Vote, string(r.Holder)))
		default:
			words = append(words, r.Vote.String())
		}
	}
	return strings.Join(words, " ")
}

// bystander is a client of s that is none of ours.
func bystander(t testing.TB, s *respfake.Server) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", Dialer: s.Dialer(), PoolSize: 1, PipelinePoolSize: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// forgetScripts empties the server's script cache.
func forgetScripts(t testing.TB, servers ...*respfake.Server) {
	t.Helper()
	for _, s := range servers {
		rdb := bystander(t, s)
		if err := rdb.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		rdb.Close()
	}
}

// keysOn are the keys of a server's database 0.
func keysOn(s *respfake.Server) (keys []string) {
	s.Do(0, func(tx *respfake.Tx) { keys = tx.Keys() })
	return keys
}

// tokenOn is what the server holds for key, "" for nothing.
func tokenOn(s *respfake.Server, key string) (token Token) {
	s.Do(0, func(tx *respfake.Tx) {
		text, _, _ := tx.Get(key)
		token = Token(text)
	})
	return token
}

// leftOn are the keys that any of the servers holds.
func leftOn(servers []*respfake.Server) (left []string) {
	for i, s := range servers {
		for _, key := range keysOn(s) {
			left = append(left, fmt.Sprintf("node %d: %q", i+1, key))
		}
	}
	return left
}

// asked counts the requests of these names that the server has taken up.
func asked(s *respfake.Server, commands ...string) int { return len(s.Log(commands...)) }

// commandsIn are the commands that were sent, each once, sorted.
func commandsIn(entries []respfake.Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// shortConn is a connection that ends after so many more bytes have been read
// from it, wherever in a reply that is. Until it is told, it does not.
type shortConn struct {
	net.Conn
	left int // negative: no end
}

func (c *shortConn) Read(b []byte) (int, error) {
	if c.left < 0 {
		return c.Conn.Read(b)
	}
	if c.left == 0 {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
