package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
)

// Work is what is done under the lock.
type Work string

const (
	// Append appends to a list, if the fence is not stale.
	Append Work = "append"

	// Update reads a list, waits, and writes it back with one element more, if the
	// fence is not stale. It is claimed before it is read.
	Update Work = "update"

	// Careless is Update without fences: the lock alone is to keep others away.
	Careless Work = "careless"
)

// store is the resource: a list for each key, behind a fence.
type store struct{ client *redis.Client }

func (s store) guard() fence.Redis {
	return func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		return redis.NewScript(script).Run(ctx, s.client, keys, args...).Result()
	}
}

// ListOf and fenceOf are where a key's list and its fence are.
func ListOf(key string) string  { return "{" + key + "}" }
func fenceOf(key string) string { return "{" + key + "}:fence" }

// append is Append. It is the server that writes down which fence it was shown.
func (s store) append(ctx context.Context, key string, f fence.Token, element string) error {
	_, err := s.guard().Run(ctx, fenceOf(key), f,
		"return redis.call('APPEND', KEYS[2], ARGV[1] .. ':' .. ARGV[2] .. ' ')", []string{ListOf(key)}, element)
	return err
}

// read is the first half of Update and Careless.
func (s store) read(ctx context.Context, w Work, key string, f fence.Token) (string, error) {
	if w == Update {
		if err := s.guard().Claim(ctx, fenceOf(key), f); err != nil {
			return "", err
		}
	}
	list, err := s.client.Get(ctx, ListOf(key)).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return list, err
}

// write is the second half.
func (s store) write(ctx context.Context, w Work, key string, f fence.Token, list, element string) error {
	list += fmt.Sprintf("%s:%s ", f, element)
	if w == Careless {
		return s.client.Set(ctx, ListOf(key), list, 0).Err()
	}
	_, err := s.guard().Run(ctx, fenceOf(key), f, "return redis.call('SET', KEYS[2], ARGV[2])", []string{ListOf(key)}, list)
	return err
}

// Log is what the list of a key holds.
func Log(ctx context.Context, c *redis.Client, key string) (log []history.Entry, err error) {
	text, err := c.Get(ctx, ListOf(key)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	for _, item := range strings.Fields(text) {
		e := history.Entry{Key: key}
		if _, err := fmt.Sscanf(item, "%d:%s", &e.Fence, &e.Element); err != nil {
			return nil, fmt.Errorf("%q in the list of %q: %w", item, key, err)
		}
		log = append(log, e)
	}
	return log, nil
}
