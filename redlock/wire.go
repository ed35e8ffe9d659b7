package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
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

// form is how operations are put to a node.
type form struct {
	plain  bool // before Redis 7, SET refuses NX together with GET
	perKey bool // a member of a cluster takes only keys of one slot in a script
	whole  bool // scripts go in full, for this once: the node has lost them
	single bool // each key has a script call of its own, for this once
}

// part is one command of a pipeline, two for OpInspect, and what it carries.
type part []*Op

var (
	// errNoLock is why a script denies a key that is not another's.
	errNoLock = errors.New("the key holds something that is no lock")
	// errConnEnded is why nothing more is sent.
	errConnEnded = errors.New("the connection has ended")
)

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
					if op.Kind != OpAcquire || !releases(flight, op.Key) {
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

// part is the first command of a flight.
func (f form) part(flight []*Op) part {
	if op := flight[0]; op.Kind == OpInspect || op.isSet() || f.perKey || f.single {
		return flight[:1]
	}
	return sameKind(flight)
}

// isSet reports whether an operation is a SET; the others are scripts, and OpInspect.
func (op *Op) isSet() bool { return op.Kind == OpAcquire && op.Counter == "" }

// appendFlight appends the commands of a flight to a request. c.writing is held.
func (c *redisConn) appendFlight(b []byte, flight []*Op, f form) []byte {
	for len(flight) > 0 {
		p := f.part(flight)
		flight = flight[len(p):]
		switch op := p[0]; {
		case op.isSet():
			b = appendSet(b, op, f.plain)
		case op.Kind == OpInspect:
			b = appendWord(appendWord(appendWords(b, 2), "get"), op.Key)
			b = appendWord(appendWord(appendWords(b, 2), "pttl"), op.Key)
		default:
			// The first acquire brings its script along, known to the node or not: one
			// that had to be sent again would come after what stands behind it.
			first := op.Kind == OpAcquire && !c.fenced
			c.fenced = c.fenced || first
			b = appendCall(b, p, f.whole || first)
		}
	}
	return b
}

// appendSet appends the SET for an acquire. plain: it does not ask who has the key
// instead.
func appendSet(b []byte, op *Op, plain bool) []byte {
	if plain {
		b = append(b, "*6\r\n$3\r\nset\r\n"...)
	} else {
		b = append(b, "*7\r\n$3\r\nset\r\n"...)
	}
	b = appendWord(appendWord(b, op.Key), string(op.Token))
	b = append(b, "$2\r\nnx\r\n$2\r\npx\r\n"...)
	b = appendNumber(b, ceilMillis(op.TTL))
	if !plain {
		b = append(b, "$3\r\nget\r\n"...)
	}
	return b
}

// read reads what the node answers to p and fills in the replies. refusal is an error
// that the node has answered to all of it.
func (c *redisConn) read(p part, sent form) (refusal, err error) {
	r := &c.socket.values
	v, err := r.next()
	if err != nil {
		return nil, err
	}
	if v.kind == valueError {
		refusal = errorReply(withoutTokens(string(v.text), p))
	}
	op := p[0]
	switch {
	case op.isSet():
		op.Reply = setReply(op, v, refusal, sent.plain)
		if v.kind == valueList {
			err = r.skip(v.n)
		}
	case op.Kind == OpInspect:
		op.Reply, refusal, err = r.inspected(v, refusal)
	case v.kind == valueList && v.n == int64(len(p)):
		for _, op := range p {
			v, err := r.next()
			if err != nil {
				return nil, err
			}
			op.Reply = scriptReply(op, v)
			if v.kind == valueList {
				if err := r.skip(v.n); err != nil {
					return nil, err
				}
			}
		}
	default:
		all := v.kind == valueNumber && v.n == int64(len(p)) && (op.Kind == OpExtend || op.Kind == OpRelease)
		for _, op := range p {
			switch {
			case refusal != nil:
				op.Reply = Reply{Vote: quorum.Unknown, Err: refusal, Nothing: op.Kind == OpAcquire && refused(refusal)}
			case all:
				op.Reply = Reply{Vote: quorum.Granted}
			default:
				op.Reply = oddReply(op, v)
			}
		}
		if v.kind == valueList {
			err = r.skip(v.n)
		}
	}
	return refusal, err
}

// setReply is what the answer to a SET means.
func setReply(op *Op, v value, refusal error, plain bool) Reply {
	switch {
	case refusal != nil && redis.HasErrorPrefix(refusal, "WRONGTYPE"): // there is a key, and it is no lock
		return Reply{Vote: quorum.Denied, Err: refusal}
	case refusal != nil:
		return Reply{Vote: quorum.Unknown, Err: refusal, Nothing: true}
	case plain && v.kind == valueText, !plain && v.kind == valueNull, !plain && v.kind == valueText && string(v.text) == string(op.Token):
		return Reply{Vote: quorum.Granted}
	case plain && v.kind == valueNull:
		return Reply{Vote: quorum.Denied}
	case v.kind == valueText:
		return Reply{Vote: quorum.Denied, Holder: Token(v.text)}
	}
	return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("SET was answered %v", v)}
}

// inspected is what the answers to GET, which is v, and to PTTL mean.
func (r *values) inspected(v value, refusal error) (Reply, error, error) {
	holder := Token(v.text) // reading on takes the text away
	var odd error
	if v.kind != valueText && v.kind != valueNull {
		odd = fmt.Errorf("GET was answered %v", v)
	}
	if v.kind == valueList {
		if err := r.skip(v.n); err != nil {
			return Reply{}, nil, err
		}
	}
	left, err := r.next()
	if err != nil {
		return Reply{}, nil, err
	}
	switch {
	case left.kind == valueError:
		refusal = cmp.Or[error](refusal, errorReply(left.text))
	case left.kind != valueNumber:
		odd = cmp.Or(odd, fmt.Errorf("PTTL was answered %v", left))
	}
	if left.kind == valueList {
		if err := r.skip(left.n); err != nil {
			return Reply{}, nil, err
		}
	}
	switch {
	case redis.HasErrorPrefix(refusal, "WRONGTYPE"): // there is a key, and it is no lock
		return Reply{Vote: quorum.Denied, Err: refusal}, nil, nil
	case refusal != nil:
		return Reply{Vote: quorum.Unknown, Err: refusal}, refusal, nil
	case v.kind == valueNull:
		return Reply{Vote: quorum.Denied}, nil, nil
	case odd != nil:
		return Reply{Vote: quorum.Unknown, Err: odd}, nil, nil
	}
	return Reply{Vote: quorum.Granted, Holder: holder, Remaining: max(0, time.Duration(left.n)*time.Millisecond)}, nil, nil
}

// scriptReply is what a script's answer for one operation means.
func scriptReply(op *Op, v value) Reply {
	switch {
	case v.kind == valueText:
		return Reply{Vote: quorum.Denied, Holder: Token(v.text)}
	case v.kind != valueNumber:
	case v.n == 0 && op.Kind == OpAcquire:
		return Reply{Vote: quorum.Denied, Err: errNoLock}
	case v.n == 0:
		return Reply{Vote: quorum.Denied}
	case v.n > 0 && op.Kind == OpAcquire:
		return Reply{Vote: quorum.Granted, Fence: fence.Token(v.n)}
	case v.n == 1:
		return Reply{Vote: quorum.Granted}
	case v.n == -1 && op.Counter != "":
		return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("its fences cannot be counted: %q holds no number, or too large a one", op.Counter)}
	}
	return oddReply(op, v)
}

// oddReply is for an answer that op's script never gives.
func oddReply(op *Op, v value) Reply {
	if v.kind == valueText && len(v.text) > 0 { // perhaps a token
		return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("the %s script answered a text", op.Kind)}
	}
	return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("the %s script answered %v", op.Kind, v)}
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

// redirects reports whether a node takes no writes, as it is no master of the key.
func redirects(refusal error) bool {
	return redis.HasErrorPrefix(refusal, "READONLY") || redis.HasErrorPrefix(refusal, "MOVED")
}

// releases reports whether the flight has released key. Its acquire must not be
// sent again then: it would outlive its own release.
func releases(flight []*Op, key string) bool {
	return slices.ContainsFunc(flight, func(op *Op) bool {
		return op.Kind == OpRelease && op.Key == key
	})
}

// sameKind is the operations at the head of flight that are of one kind.
func sameKind(flight []*Op) part {
	for n, op := range flight {
		if op.Kind != flight[0].Kind {
			return flight[:n]
		}
	}
	return flight
}

// withoutTokens is what a node says, without the tokens of p, which some repeat.
func withoutTokens(text string, p part) string {
	for _, op := range p {
		if len(op.Token) > 8 { // no word of a server's
			text = strings.ReplaceAll(text, string(op.Token), op.Token.Digest())
		}
	}
	return text
}

// isReply reports whether err came from the node as an answer to a command.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
