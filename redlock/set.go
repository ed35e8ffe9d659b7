package redlock

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/quorum"
)

// setCmd is a SET that is used again and again. go-redis writes what its arguments
// point to and hands its answer over unread, so that nothing is allocated for either:
// the usual answer, nil, is an error to go-redis, and it looks long into errors.
type setCmd struct {
	cmd    *redis.RawWriteToCmd
	args   []any // cmd's own
	px     int64
	answer []byte

	// What read has made of the answer.
	value []byte // part of it
	empty bool
	err   error
}

// maxAnswer is how much room for an answer is kept: a key may hold something of any
// size, but a token is short.
const maxAnswer = 1 << 10

// Write takes the answer.
func (s *setCmd) Write(b []byte) (int, error) {
	s.answer = append(s.answer, b...)
	return len(b), nil
}

// set is the SET for an acquire, the nth of its flight.
func (c *redisConn) set(n int, op *Op) *setCmd {
	for n >= len(c.sets) {
		s := &setCmd{args: []any{"set", nil, nil, "nx", "px", nil, "get"}}
		s.args[5] = &s.px
		s.cmd = redis.NewRawWriteToCmd(context.Background(), s, s.args...)
		c.sets = append(c.sets, s)
	}
	s := c.sets[n]
	s.args[1], s.args[2] = &op.Key, (*string)(&op.Token)
	s.px = ceilMillis(op.TTL)
	if len(s.cmd.Args()) == len(s.args) && c.form.plain {
		s.cmd = redis.NewRawWriteToCmd(context.Background(), s, s.args[:6]...)
	}
	if s.answer = s.answer[:0]; cap(s.answer) > maxAnswer {
		s.answer = nil
	}
	s.cmd.SetErr(errUnread) // what it answered last time is no answer now
	return s
}

// read looks into the answer. One that has come stands, whatever go-redis says of the
// flight: it puts the end of the connection down to every command.
func (s *setCmd) read() {
	s.value, s.empty, s.err = nil, false, nil
	line, rest, whole := bytes.Cut(s.answer, []byte("\r\n"))
	if !whole || len(line) == 0 {
		s.err = cmp.Or(s.cmd.Err(), errUnread)
		return
	}
	switch kind := line[0]; {
	case kind == '-':
		s.err = errorReply(line[1:])
	case kind == '_', string(line) == "$-1":
		s.empty = true
	case kind == '+':
		s.value = line[1:]
	case kind == '$':
		if s.value, whole = bytes.CutSuffix(rest, []byte("\r\n")); !whole || strconv.Itoa(len(s.value)) != string(line[1:]) {
			s.err = cmp.Or(s.cmd.Err(), errUnread)
		}
	default:
		s.err = fmt.Errorf("SET was answered %q", line)
	}
}

// redirects reports whether the node takes no writes, as it is no master of the key.
func (s *setCmd) redirects() bool {
	return s.err != nil && (redis.HasErrorPrefix(s.err, "READONLY") || redis.HasErrorPrefix(s.err, "MOVED"))
}

// reply is what it means for an acquire with token. plain: it was sent without GET.
func (s *setCmd) reply(token Token, plain bool) Reply {
	switch {
	case s.err != nil && redis.HasErrorPrefix(s.err, "WRONGTYPE"): // there is a key, and it is no lock
		return Reply{Vote: quorum.Denied, Err: s.err}
	case s.err != nil:
		return Reply{Vote: quorum.Unknown, Err: s.err, Nothing: isReply(s.err)}
	case s.empty != plain, !plain && string(s.value) == string(token):
		return Reply{Vote: quorum.Granted}
	case plain:
		return Reply{Vote: quorum.Denied}
	}
	return Reply{Vote: quorum.Denied, Holder: Token(s.value)}
}

// errorReply is an error that a node has answered.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError makes it a [redis.Error].
func (errorReply) RedisError() {}
