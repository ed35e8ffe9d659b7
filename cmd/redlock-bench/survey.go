package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/internal/history"
)

const (
	// introPatience is how long a node may take to connect and say who it is.
	introPatience = 3 * time.Second
	// surveyPatience is how long the whole look at it may take. Going through
	// all its keys, that is many millions.
	surveyPatience = 30 * time.Second
)

// survey is what a look at one node found.
type survey struct {
	url    string // masked
	server string // such as "Redis 7.0.15"
	keys   []string
	fences []string // more keys, which count the fences and outlive their locks
	err    error    // why it could not be looked at
}

// look asks every node, past the locker and all at once, who it is and which
// keys with a prefix it has.
func (c *cluster) look(ctx context.Context, prefix string) []survey {
	ctx, cancel := context.WithTimeout(ctx, surveyPatience)
	defer cancel()
	found := make([]survey, len(c.urls))
	var group sync.WaitGroup
	for i, u := range c.urls {
		group.Go(func() { found[i] = lookAt(ctx, u, prefix) })
	}
	group.Wait()
	return found
}

func lookAt(ctx context.Context, nodeURL, prefix string) survey {
	s := survey{url: masked(nodeURL)}
	client, err := plainClient(nodeURL)
	if err != nil {
		s.err = err
		return s
	}
	defer client.Close()
	intro, cancel := context.WithTimeout(ctx, introPatience)
	defer cancel()
	info, err := client.Info(intro, "server").Result()
	if err != nil {
		s.err = err
		return s
	}
	s.server = serverName(info)
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if key := keys.Val(); strings.HasSuffix(key, ":fence") {
			s.fences = append(s.fences, key)
		} else {
			s.keys = append(s.keys, key)
		}
	}
	s.err = keys.Err()
	return s
}

// forget removes the counters of fences that were found. Where it cannot, they
// end by themselves.
func (c *cluster) forget(ctx context.Context, found []survey) {
	for i, s := range found {
		client, err := plainClient(c.urls[i])
		if err != nil {
			continue
		}
		for some := range slices.Chunk(s.fences, 1000) {
			client.Unlink(ctx, some...)
		}
		client.Close()
	}
}

// plainClient is a client of one node that has nothing to do with the locker's.
func plainClient(nodeURL string) (*redis.Client, error) {
	opts, err := redis.ParseURL(nodeURL)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", masked(nodeURL))
	}
	opts.PoolSize = 1
	opts.DialTimeout, opts.DialerRetries, opts.MaxRetries = introPatience, 1, -1
	opts.ReadTimeout, opts.ContextTimeoutEnabled = surveyPatience, true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts), nil
}

// serverName is the name and version of a server by its INFO. Redis gives a
// version; what is not Redis gives that of the Redis it is like, its own name,
// and its own version under that name.
func serverName(info string) string {
	fields := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	if name := fields["server_name"]; name != "" && name != "redis" {
		return name + " " + fields[name+"_version"]
	}
	return "redis " + fields["redis_version"]
}

// left are the keys that were found, node by node, and notAsked the nodes that
// could not be looked at.
func left(found []survey) (keys []history.Left, notAsked []survey) {
	for _, s := range found {
		if s.err != nil {
			notAsked = append(notAsked, s)
		}
		for _, k := range s.keys {
			keys = append(keys, history.Left{Node: s.url, Key: k})
		}
	}
	return keys, notAsked
}
