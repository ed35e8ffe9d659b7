package rival

import (
	"cmp"
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockRetry is how long redislock is told to wait between tries. By itself
// it does not wait at all.
const redislockRetry = 5 * time.Millisecond

var redislockLock = Lock{
	Name: "redislock", Title: "redislock, one node", Module: "github.com/bsm/redislock", Single: true,
	Setup: "TTL 10 s, tries every 5 ms (it has no defaults for these); a go-redis client with its defaults",
	Does:  []string{"one node's word"},
	DoesNot: []string{
		"surviving the loss of its node", "fences", "renewal", "telling of a loss", "an order of waiters",
	},
	open: openRedislock,
}

type redislockLocker struct {
	*redislock.Client
	redis   *redis.Client
	prefix  string
	ttl     time.Duration
	options *redislock.Options
}

func openRedislock(s Site) (Locker, error) {
	opts, err := redis.ParseURL(s.URLs[0])
	if err != nil {
		return nil, err
	}
	c := redis.NewClient(opts)
	return &redislockLocker{
		Client: redislock.New(c), redis: c, prefix: s.Prefix, ttl: cmp.Or(s.TTL, 10*time.Second),
		options: &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockRetry)},
	}, nil
}

// Acquire tries again when redislock has given up, which it does after one TTL
// where ctx has no end.
func (l *redislockLocker) Acquire(ctx context.Context, key string) (Lease, error) {
	for {
		lock, err := l.Obtain(ctx, l.prefix+key, l.ttl, l.options)
		if err == nil {
			return lock, nil
		}
		if ctx.Err() != nil || err != context.DeadlineExceeded {
			return nil, err
		}
	}
}

func (l *redislockLocker) Close(context.Context) error { return l.redis.Close() }
