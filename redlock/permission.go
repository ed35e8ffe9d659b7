package redlock

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// askPermission finds out what this user may do, by trying on a key that nobody uses.
// Each command is one that changes nothing even where it is permitted: the node
// looks at permissions after it has counted the arguments, and before it reads
// them.
func (c *redisConn) askPermission(ctx context.Context, key string, f *Facts) error {
	trials := []struct {
		command string
		args    []any
	}{
		{"set", []any{"set", key, "", "nx", "xx", "get"}}, // a contradiction
		{"get", []any{"get", key}},
		{"mget", []any{"mget", key}},
		{"del", []any{"del", key}},
		{"exists", []any{"exists", key}},
		{"pttl", []any{"pttl", key}},
		{"pexpire", []any{"pexpire", key, "never"}}, // no number
		{"eval", []any{"eval", "return 0", 1, key}},
		{"evalsha", []any{"evalsha", strings.Repeat("0", 40), 1, key}}, // no script
		{"ping", []any{"ping"}},
		{"client|id", []any{"client", "id"}},
		{"client|kill", []any{"client", "kill", "id", "0"}}, // nobody's
	}
	pipe := c.conn.Pipeline()
	var cmds []*redis.Cmd
	for _, t := range trials {
		cmds = append(cmds, pipe.Do(ctx, t.args...))
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, t := range trials {
		err := cmds[i].Err()
		f.refuse(t.command, err)
		switch refusalOf(err) {
		case refusedKey:
			f.RefusedKey = err.Error()
		case refusedState:
			if t.command == "set" {
				f.RefusedWrites = err.Error()
			}
		}
	}
	return nil
}

// refusal is what a node's error is about.
type refusal uint8

const (
	refusedNothing refusal = iota // no error, or one about the arguments
	refusedCommand                // the user may not run it, or it has been renamed
	refusedKey                    // the user may not touch the key
	refusedState                  // nobody may, at present
)

// refusalOf reads an answer to a command that was tried.
func refusalOf(err error) refusal {
	if !isReply(err) || errors.Is(err, redis.Nil) {
		return refusedNothing
	}
	text := err.Error()
	switch code, _, _ := strings.Cut(text, " "); code {
	case "NOPERM":
		// "this user has no permissions to access one of the keys used as
		// arguments", from 7.2 on "No permissions to access a key".
		if strings.Contains(text, " to access ") {
			return refusedKey
		}
		return refusedCommand
	case "ERR":
		if strings.Contains(strings.ToLower(text), "unknown command") || strings.Contains(strings.ToLower(text), "unknown subcommand") {
			return refusedCommand
		}
		return refusedNothing
	case "NOSCRIPT", "WRONGTYPE", "MOVED", "ASK", "CROSSSLOT":
		return refusedNothing // it would have run
	}
	return refusedState
}
