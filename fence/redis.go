package fence

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed guard.lua
var guard string

// staleReply is the code of the error with which guard.lua refuses.
const staleReply = "STALEFENCE"

// Redis guards what is kept in Redis. It is the way to run a script there, on the
// server that holds the resource; with go-redis:
//
//	guard := fence.Redis(func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
//		return redis.NewScript(script).Run(ctx, client, keys, args...).Result()
//	})
//
// It returns the server's errors as they are, or wrapped with their text. The
// server is any Redis or Valkey.
//
// Each resource has a key for the largest fence that has come to it: a key of
// its own, none of the lock's. It never expires. All keys of one call must be in one hash slot, for which it
// is enough that they have the same part in braces:
//
//	{stock:42}          the resource
//	{stock:42}:fence    its fence
//
// Redis forgets more easily than a database. After a restart without a
// persistence that writes every command, or after a fail-over to a replica that
// was behind, the largest fence may be gone, and the next stale one is let in.
type Redis func(ctx context.Context, script string, keys []string, args ...any) (any, error)

// Claim enters the resource, whose fence is at key, with the fence t: from then
// on every smaller fence is refused. It comes before the first read of what a
// later write depends on. (What happens otherwise is shown at the top of this
// page.) If a larger fence has come before, the error wraps [ErrStale] and
// nothing has changed. Claiming again with the same fence changes nothing.
//
// A claim lasts until a larger fence comes, which may be at any time: writes that
// follow are guarded too, by [Redis.Run].
func (r Redis) Claim(ctx context.Context, key string, t Token) error {
	_, err := r.Run(ctx, key, t, "return 1", nil)
	return err
}

// Run runs a script of the caller's, in one step with a check that no larger
// fence than t has come before; t is remembered at key. If one has, the error
// wraps [ErrStale] and nothing has changed. Otherwise Run returns what the script
// does, through r.
//
// The script's keys begin at KEYS[2] and its args at ARGV[2], since KEYS[1] is
// key and ARGV[1] is t. This one sets a string:
//
//	return redis.call('SET', KEYS[2], ARGV[2])
//
// It should return something, since go-redis makes an error of nothing. It may
// run twice, where a client sends again what was not answered, and a context that
// ends does not say whether it ran; so it should do the same when it is done
// twice. The server keeps every script that it has run: what differs from call to
// call belongs into args.
//
// If key holds something that is no fence, the server's error says so and nothing
// has changed.
func (r Redis) Run(ctx context.Context, key string, t Token, script string, keys []string, args ...any) (any, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	answer, err := r(ctx, guard+script, append([]string{key}, keys...), append([]any{t.String()}, args...)...)
	if err != nil && strings.Contains(err.Error(), staleReply) {
		return nil, fmt.Errorf("fence %s at %q: %w: %w", t, key, ErrStale, err)
	}
	return answer, err
}
