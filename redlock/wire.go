package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// redisConn carries flights to a Redis node, each as one pipeline.
type redisConn struct {
	socket net.Conn
	peer   Peer

	// mu is held by every call and guards what follows: go-redis bears no Close
	// while one is running.
	mu     sync.Mutex
	client *redis.Client
	conn   *redis.Conn
	form   form
	fenced bool // an acquire with a fence has been sent

	sets  []*setCmd // reused from flight to flight
	parts []part
}

// form is how operations are put to a node.
type form struct {
	plain  bool // before Redis 7, SET refuses NX together with GET
	perKey bool // a member of a cluster takes only keys of one slot in a script
	whole  bool // scripts go in full: the node has lost them
	single bool // each key has a script call of its own, for this once
}

// part is one command of a pipeline, two for OpInspect, and what it carries.
type part struct {
	ops  []*Op
	cmd  redis.Cmder
	set  *setCmd // what cmd is of, or nil
	left *redis.DurationCmd
}

// errNoLock is why a script denies a key that is not another's.
var errNoLock = errors.New("the key holds something that is no lock")

// errUnread is the error of a command whose answer was not read.
var errUnread = errors.New("no answer was read")

// Peer implements Conn.
func (c *redisConn) Peer() Peer { return c.peer }

// Gather implements Conn: whoever can run does so first. Flights grow deeper by
// that, and nobody waits for a timer.
func (c *redisConn) Gather() { runtime.Gosched() }

// Close implements Conn.
func (c *redisConn) Close() error {
	err := c.socket.Close() // ends the call that is running
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.Close()
	c.client.Close()
	return err
}

// Kill implements Conn.
func (c *redisConn) Kill(ctx context.Context, id int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.conn.Process(ctx, redis.NewIntCmd(ctx, "client", "kill", "id", id))
	if isReply(err) {
		return fmt.Errorf("%w: CLIENT KILL: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Send implements Conn.
func (c *redisConn) Send(ctx context.Context, flight []*Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(flight) == 0 {
		return c.ping(ctx)
	}
	again, err := c.exec(ctx, flight)
	for tries := 0; err == nil && len(again) > 0 && tries < 3; tries++ {
		again, err = c.exec(ctx, again)
	}
	c.form.whole, c.form.single = false, false
	return err
}

// ping asks whether the node is there, and whether it is what it was: it may have
// copied another meanwhile, and then gone on as a master, without ending any
// connection.
func (c *redisConn) ping(ctx context.Context) error {
	if c.peer.RunID == "" {
		return c.conn.Ping(ctx).Err()
	}
	info, err := c.conn.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	is := peer(fields(info))
	if is.Replica != c.peer.Replica || is.ReplicationID != c.peer.ReplicationID {
		return errors.New("it has become another node's replica, or been one")
	}
	return nil
}

// exec sends a flight as one pipeline and fills in the replies. It returns the
// operations that the node refused because of their form, without carrying them
// out; sent again, they go in another.
func (c *redisConn) exec(ctx context.Context, flight []*Op) (again []*Op, err error) {
	pipe := c.conn.Pipeline()
	sent := c.form
	c.parts = c.parts[:0]
	for i := 0; i < len(flight); {
		p := part{ops: flight[i : i+1]}
		switch op := flight[i]; {
		case op.Kind == OpAcquire && op.Counter == "":
			p.set = c.set(i, op)
			p.cmd = p.set.cmd
			pipe.Process(ctx, p.cmd)
		case op.Kind == OpInspect:
			p.cmd = pipe.Get(ctx, op.Key)
			p.left = pipe.PTTL(ctx, op.Key)
		default:
			if !sent.perKey && !sent.single {
				p.ops = sameKind(flight[i:])
			}
			p.cmd = c.script(ctx, p.ops)
			pipe.Process(ctx, p.cmd)
		}
		c.parts = append(c.parts, p)
		i += len(p.ops)
	}
	_, err = pipe.Exec(ctx)
	for _, p := range c.parts {
		if p.set != nil {
			p.set.read()
			// As go-redis would do, if it had looked into it.
			if (err == nil || isReply(err)) && p.set.redirects() {
				err = p.set.err
				c.socket.Close()
			}
		}
		for i, op := range p.ops {
			op.Reply = p.reply(i, sent)
			op.Reply.Err = withoutTokens(op.Reply.Err, p.ops)
			if err != nil && errors.Is(op.Reply.Err, errUnread) {
				op.Reply.Err = err // why it was not read
			}
		}
		if c.reform(p, sent) {
			for _, op := range p.ops {
				if op.Kind != OpAcquire || !releases(flight, op.Key) {
					again = append(again, op)
				}
			}
		}
	}
	// A command's own error is in its reply. After these two, though, go-redis
	// gives the connection up.
	if isReply(err) && !redis.HasErrorPrefix(err, "READONLY") && !redis.HasErrorPrefix(err, "MOVED") {
		err = nil
	}
	return again, err
}

// reform changes the form if that is what the node refused, and reports
// whether it was.
func (c *redisConn) reform(p part, sent form) bool {
	err, isSet := p.cmd.Err(), p.set != nil
	if isSet {
		err = p.set.err
	}
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	switch {
	case isSet && !sent.plain && redis.HasErrorPrefix(err, "syntax error"):
		c.form.plain = true
	case !isSet && !sent.whole && redis.HasErrorPrefix(err, "NOSCRIPT"):
		c.form.whole = true
	case !isSet && !sent.perKey && redis.HasErrorPrefix(err, "CROSSSLOT"):
		c.form.perKey = true
	case len(p.ops) > 1 && redis.HasErrorPrefix(err, "NOPERM"):
		c.form.single = true // it may be about one of the keys
	default:
		return false
	}
	return true
}

// releases reports whether the flight has released key. Its acquire must not be
// sent again then: it would outlive its own release.
func releases(flight []*Op, key string) bool {
	return slices.ContainsFunc(flight, func(op *Op) bool {
		return op.Kind == OpRelease && op.Key == key
	})
}

// sameKind is the operations at the head of flight that are of one kind.
func sameKind(flight []*Op) []*Op {
	for n, op := range flight {
		if op.Kind != flight[0].Kind {
			return flight[:n]
		}
	}
	return flight
}

// reply is what the node answered to the part's ith operation.
func (p part) reply(i int, sent form) Reply {
	op := p.ops[i]
	switch cmd := p.cmd.(type) {
	case *redis.RawWriteToCmd:
		return p.set.reply(op.Token, sent.plain)
	case *redis.StringCmd:
		val, err := cmd.Result()
		switch {
		case errors.Is(err, redis.Nil):
			return Reply{Vote: quorum.Denied}
		case redis.HasErrorPrefix(err, "WRONGTYPE"): // there is a key, and it is no lock
			return Reply{Vote: quorum.Denied, Err: err}
		}
		left, leftErr := p.left.Result()
		if err = cmp.Or(err, leftErr); err != nil {
			return Reply{Vote: quorum.Unknown, Err: err}
		}
		return Reply{Vote: quorum.Granted, Holder: Token(val), Remaining: max(0, left)}
	case *redis.Cmd:
		val, err := cmd.Result()
		if err != nil {
			return Reply{Vote: quorum.Unknown, Err: err, Nothing: op.Kind == OpAcquire && refused(err)}
		}
		if each, ok := val.([]any); ok && len(each) == len(p.ops) {
			val = each[i]
		} else if n, ok := val.(int64); ok && n == int64(len(p.ops)) {
			val = int64(1)
		}
		switch val := val.(type) {
		case string:
			return Reply{Vote: quorum.Denied, Holder: Token(val)}
		case int64:
			switch {
			case val == 0 && op.Kind == OpAcquire:
				return Reply{Vote: quorum.Denied, Err: errNoLock}
			case val == 0:
				return Reply{Vote: quorum.Denied}
			case val > 0 && op.Kind == OpAcquire:
				return Reply{Vote: quorum.Granted, Fence: fence.Token(val)}
			case val == 1:
				return Reply{Vote: quorum.Granted}
			case val == -1 && op.Counter != "":
				return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("its fences cannot be counted: %q holds no number, or too large a one", op.Counter)}
			}
		}
		return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("the %s script answered %T", op.Kind, val)}
	}
	return Reply{Vote: quorum.Unknown, Err: errUnread}
}

// withoutTokens is err without the tokens of ops, which some servers repeat.
func withoutTokens(err error, ops []*Op) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, op := range ops {
		if len(op.Token) > 8 { // no word of a server's
			text = strings.ReplaceAll(text, string(op.Token), op.Token.Digest())
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// isReply reports whether err came from the node as an answer to a command.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
