package rival

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

var redsyncLock = Lock{
	Name: "redsync", Title: "redsync", Module: "github.com/go-redsync/redsync/v4",
	Setup: "defaults: expiry 8 s, 32 tries 50-250 ms apart, then once more from the beginning; a go-redis client with its defaults for each node",
	Does:  []string{"a majority of all nodes"},
	DoesNot: []string{
		"fences", "renewal", "telling of a loss", "an order of waiters", "a bound on Unlock",
		"going on when a node hangs: it waits for all", "keeping restarted nodes from voting",
	},
	open: openRedsync,
}

type redsyncLocker struct {
	*redsync.Redsync
	prefix  string
	options []redsync.Option
	clients []*goredis.Client
}

func openRedsync(s Site) (Locker, error) {
	l := &redsyncLocker{prefix: s.Prefix}
	if s.TTL > 0 {
		l.options = append(l.options, redsync.WithExpiry(s.TTL))
	}
	var pools []redis.Pool
	for _, u := range s.URLs {
		opts, err := goredis.ParseURL(u)
		if err != nil {
			return nil, errors.Join(err, l.Close(context.Background()))
		}
		c := goredis.NewClient(opts)
		l.clients, pools = append(l.clients, c), append(pools, pool.NewPool(c))
	}
	l.Redsync = redsync.New(pools...)
	return l, nil
}

// Acquire takes no end of tries for an answer.
func (l *redsyncLocker) Acquire(ctx context.Context, key string) (Lease, error) {
	m := l.NewMutex(l.prefix+key, l.options...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return (*redsyncMutex)(m), nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

func (l *redsyncLocker) Close(context.Context) error {
	var errs []error
	for _, c := range l.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type redsyncMutex redsync.Mutex

func (m *redsyncMutex) Release(ctx context.Context) error {
	ok, err := (*redsync.Mutex)(m).UnlockContext(ctx)
	if ok {
		return nil // a majority has let go, and that is all it waits for
	}
	return errors.Join(errors.New("redsync: not unlocked"), err)
}
