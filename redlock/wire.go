package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/quorum"
)

// redisConn is a connection to a Redis node. go-redis makes it and asks who is there;
// what the lock does goes past it, each flight as one pipeline. So flights cost little,
// and one can be sent before the one before it is answered.
type redisConn struct {
	socket *handover
	peer   Peer
	limit  time.Duration

	calling sync.Mutex // held while go-redis is called: it bears no Close meanwhile
	client  *redis.Client
	conn    *redis.Conn

	writing sync.Mutex // held while a request is written, and guards what follows
	request []byte
	fenced  bool          // an acquire with a fence has been sent
	last    chan struct{} // closed when what was sent last has been read
	torn    error         // why a request was not written to its end

	mu    sync.Mutex // guards what follows
	form  form
	ended error
}

// errConnEnded is why nothing more is sent.
var errConnEnded = errors.New("the connection has ended")

// Peer implements Conn.
func (c *redisConn) Peer() Peer { return c.peer }

// Gather implements Conn: whoever can run does so first. Flights grow deeper by
// that, and nobody waits for a timer.
func (c *redisConn) Gather() { runtime.Gosched() }

// Close implements Conn.
func (c *redisConn) Close() error {
	err := c.socket.Close() // ends the calls that are running
	c.calling.Lock()
	defer c.calling.Unlock()
	c.conn.Close()
	c.client.Close()
	return err
}

// Kill implements Conn.
func (c *redisConn) Kill(ctx context.Context, id int64) error {
	c.calling.Lock()
	defer c.calling.Unlock()
	err := c.conn.Process(ctx, redis.NewIntCmd(ctx, "client", "kill", "id", id))
	if isReply(err) {
		return fmt.Errorf("%w: CLIENT KILL: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Send implements Conn.
func (c *redisConn) Send(_ context.Context, flight []*Op) error {
	if len(flight) == 0 {
		return c.ping()
	}
	c.mu.Lock()
	form := c.form
	c.mu.Unlock()
	again, err := c.exec(flight, &form)
	for tries := 0; err == nil && len(again) > 0 && tries < 3; tries++ {
		again, err = c.exec(again, &form)
	}
	return err
}

// ping asks whether the node is there, and whether it is what it was: it may have
// copied another meanwhile, and then gone on as a master, without ending any
// connection.
func (c *redisConn) ping() error {
	question := []string{"info", "replication"}
	if c.peer.RunID == "" {
		question = []string{"ping"}
	}
	return c.ask(func(b []byte) []byte {
		b = appendWords(b, len(question))
		for _, word := range question {
			b = appendWord(b, word)
		}
		return b
	}, func() error {
		v, err := c.socket.values.next()
		switch {
		case err != nil:
			return err
		case v.kind == valueError:
			return errorReply(v.text)
		case c.peer.RunID == "":
			return nil
		}
		is := peer(fields(string(v.text)))
		if is.Replica != c.peer.Replica || is.ReplicationID != c.peer.ReplicationID {
			return errors.New("it has become another node's replica, or been one")
		}
		return nil
	})
}

// ask sends a request that write appends, and has read read the answer when all that
// was asked before has been answered. An error of read ends the connection.
func (c *redisConn) ask(write func([]byte) []byte, read func() error) error {
	mine := make(chan struct{})
	defer close(mine)
	c.writing.Lock()
	before := c.last
	c.last = mine
	sent := time.Now()
	err := cmp.Or(c.torn, c.why())
	if err == nil {
		c.request = write(c.request[:0])
		c.socket.SetWriteDeadline(sent.Add(c.limit))
		// Nothing may follow a part of a request: the node would take it for the rest.
		_, c.torn = c.socket.Conn.Write(c.request)
		err = c.torn
		if cap(c.request) > largestRequest {
			c.request = nil
		}
	}
	c.writing.Unlock()
	if before != nil {
		<-before
	}
	if err == nil {
		err = c.why()
	}
	if err == nil {
		c.socket.SetReadDeadline(sent.Add(c.limit))
		err = read()
	}
	if err != nil {
		c.end(err)
	}
	return err
}

// why is why the connection has ended, or nil.
func (c *redisConn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// largestRequest is how much room for requests is kept: a flight of keys that are not
// long fits in.
const largestRequest = 1 << 18

// end ends the connection.
func (c *redisConn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = fmt.Errorf("%w: %w", errConnEnded, why)
		c.socket.Close()
	}
}

// exec sends a flight as one pipeline and fills in the replies. It returns the
// operations that the node refused because of their form, without carrying them
// out; sent again, they go in another.
func (c *redisConn) exec(flight []*Op, f *form) (again []*Op, err error) {
	for _, op := range flight { // what was said to it before is no answer now
		op.Reply = Reply{}
	}
	sent := *f
	f.whole, f.single = false, false
	var gone error // why the node can do nothing more on this connection
	read := 0
	err = c.ask(func(b []byte) []byte { return c.appendFlight(b, flight, sent) }, func() error {
		for read < len(flight) {
			p := sent.part(flight[read:])
			refusal, err := c.read(p, sent)
			if err != nil {
				return err
			}
			read += len(p)
			switch {
			case refusal == nil:
			case redirects(refusal):
				gone = refusal
			case c.reform(f, refusal, p, sent):
				for _, op := range p {
					if op.Kind != OpAcquire || !releases(flight, op) {
						again = append(again, op)
					}
				}
			}
		}
		return gone
	})
	for _, op := range flight[read:] {
		if op.Reply.Vote == quorum.Pending {
			op.Reply = Reply{Vote: quorum.Unknown, Err: err}
		}
	}
	return again, err
}

// reform changes the form if that is what the node refused, and reports
// whether it was.
func (c *redisConn) reform(f *form, refusal error, p part, sent form) bool {
	isSet := p[0].isSet()
	switch {
	case isSet && !sent.plain && redis.HasErrorPrefix(refusal, "syntax error"):
		f.plain = true
	case !isSet && !sent.whole && redis.HasErrorPrefix(refusal, "NOSCRIPT"):
		f.whole = true
	case !isSet && !sent.perKey && redis.HasErrorPrefix(refusal, "CROSSSLOT"):
		f.perKey = true
	case len(p) > 1 && redis.HasErrorPrefix(refusal, "NOPERM"):
		f.single = true // it may be about one of the keys
	default:
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.form.plain, c.form.perKey = c.form.plain || f.plain, c.form.perKey || f.perKey
	return true
}

// releases reports whether the flight has released what acquire was to set. That must
// not be sent again then: it would outlive its own release.
func releases(flight []*Op, acquire *Op) bool {
	return slices.ContainsFunc(flight, func(op *Op) bool {
		return op.Kind == OpRelease && op.Key == acquire.Key && op.Token == acquire.Token
	})
}
