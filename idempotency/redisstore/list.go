package redisstore

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/idempotency"
)

// scanned is how many keys the server looks at in one step of a scan.
const scanned = 500

// List implements [idempotency.Lister]. It scans all keys of the server, or of
// every master of a cluster, in small steps, and reads those that are records: it
// is for operators and for a sweep now and then.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		masters, err := s.masters(ctx)
		if err != nil {
			yield(idempotency.Record{}, err)
			return
		}
		for _, master := range masters {
			if !s.list(ctx, master, f, yield) {
				return
			}
		}
	}
}

// list yields the records of one server, and returns whether there is to be more.
func (s *Store) list(ctx context.Context, master redis.Cmdable, f idempotency.Filter, yield func(idempotency.Record, error) bool) bool {
	for cursor := uint64(0); ; {
		names, next, err := master.Scan(ctx, cursor, glob(s.prefix)+"*", scanned).Result()
		if err != nil {
			yield(idempotency.Record{}, err)
			return false
		}
		for _, name := range names {
			k, ours := s.keyOf(name)
			if !ours {
				continue
			}
			r, err := s.matching(ctx, master, k, f)
			switch {
			case errors.Is(err, idempotency.ErrNotFound):
			case err != nil:
				yield(idempotency.Record{}, err)
				return false
			case !yield(r, nil):
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

// matching is the record of k if it matches f, else ErrNotFound. What is under a
// record's name and is none is passed over: it must not end a sweep.
func (s *Store) matching(ctx context.Context, master redis.Cmdable, k idempotency.Key, f idempotency.Filter) (idempotency.Record, error) {
	answer, err := getScript.Run(ctx, master, []string{s.prefix + k.String()}).Slice()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE") || err == nil && len(answer) == 0:
		return idempotency.Record{}, idempotency.ErrNotFound
	case err != nil:
		return idempotency.Record{}, err
	}
	r, now, err := readRecord(k, answer)
	if err != nil {
		return idempotency.Record{}, err
	}
	due := r.State != idempotency.StateSuccess && !now.Before(r.LeaseUntil)
	if f.State != 0 && r.State != f.State || f.Due && !due {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return r, nil
}

// masters are the servers that records are on.
func (s *Store) masters(ctx context.Context) ([]redis.UniversalClient, error) {
	var mu sync.Mutex // guards masters: add is called concurrently
	var masters []redis.UniversalClient
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, c)
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err := c.ForEachMaster(ctx, add)
		return masters, err
	case *redis.Ring:
		err := c.ForEachShard(ctx, add)
		return masters, err
	}
	return []redis.UniversalClient{s.client}, nil
}

// glob is text as a pattern that matches nothing else.
func glob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
