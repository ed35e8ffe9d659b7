package rival

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

var rueidisLock = Lock{
	Name: "rueidislock", Title: "rueidislock, one node", Module: "github.com/redis/rueidis", Single: true,
	Setup: "defaults: validity 5 s. KeyMajority 1 and NoLoopTracking, as its README says for one Redis. Its own client, rueidis.",
	Does:  []string{"one node's word", "renewal", "told of a loss by the node", "waiters told of a release"},
	DoesNot: []string{
		"surviving the loss of its node", "fences", "an order of waiters", "saying whether a release succeeded",
	},
	open: openRueidis,
}

type rueidisLocker struct{ rueidislock.Locker }

func openRueidis(s Site) (Locker, error) {
	opts, err := rueidis.ParseURL(s.URLs[0])
	if err != nil {
		return nil, err
	}
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: opts, KeyPrefix: s.Prefix, KeyValidity: s.TTL, KeyMajority: 1, NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return rueidisLocker{l}, nil
}

func (l rueidisLocker) Acquire(ctx context.Context, key string) (Lease, error) {
	_, release, err := l.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return rueidisRelease(release), nil
}

func (l rueidisLocker) Close(context.Context) error {
	l.Locker.Close()
	return nil
}

// rueidisRelease waits until the node has answered, and does not say what.
type rueidisRelease context.CancelFunc

func (r rueidisRelease) Release(context.Context) error {
	r()
	return nil
}
