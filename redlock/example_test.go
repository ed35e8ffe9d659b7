package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

// The examples need five Redis masters to run; they are compiled here.
var urls = []string{
	"redis://127.0.0.1:7101", "redis://127.0.0.1:7102", "redis://127.0.0.1:7103",
	"redis://127.0.0.1:7104", "redis://127.0.0.1:7105",
}

func placeOrder(context.Context) error { return nil }

func Example() {
	locker, err := redlock.Dial(urls, redlock.Config{TTL: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err = locker.Do(ctx, "stock:42", func(ctx context.Context, lease *redlock.Lease) error {
		return placeOrder(ctx) // ctx ends if the lock is lost
	})
	switch {
	case errors.Is(err, redlock.ErrHeld):
		log.Print("somebody else is at it")
	case errors.Is(err, redlock.ErrNoQuorum):
		log.Print("too few Redis nodes: ", err)
	case errors.Is(err, redlock.ErrLost):
		log.Print("the lock was lost on the way: ", err)
	}
}

func ExampleLocker_TryAcquire() {
	locker, err := redlock.New([]redlock.Node{
		redlock.Redis(&redis.Options{Addr: "10.0.0.1:6379"}),
		redlock.Redis(&redis.Options{Addr: "10.0.0.2:6379"}),
		redlock.Redis(&redis.Options{Addr: "10.0.0.3:6379"}),
	}, redlock.Config{KeyPrefix: "lock:"})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	lease, err := locker.TryAcquire(context.Background(), "report:2026-11")
	if errors.Is(err, redlock.ErrHeld) {
		return // it is being made
	}
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := lease.Release(context.Background()); err != nil {
			log.Print(err)
		}
	}()
	lease.KeepAlive()
	if err := placeOrder(lease.Context()); err != nil {
		log.Print(err)
	}
}

// A Trace that logs each lease and counts what operators watch: key, token
// digest, time to acquire, what was left at release, and the outcome.
func ExampleTrace() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, nil))
	var held, noQuorum, tooSlow, notReleased, lost atomic.Int64
	trace := &redlock.Trace{
		Acquired: func(e redlock.AcquireEvent) {
			switch {
			case errors.Is(e.Err, redlock.ErrHeld):
				held.Add(1)
			case errors.Is(e.Err, redlock.ErrNoQuorum):
				noQuorum.Add(1)
			case errors.Is(e.Err, redlock.ErrTooSlow):
				tooSlow.Add(1)
			}
			logger.Info("acquired", "key", e.Key, "token", e.Token, "took", e.Elapsed, "attempts", e.Attempts, "err", e.Err)
		},
		Released: func(e redlock.ReleaseEvent) {
			if e.Err != nil {
				notReleased.Add(1)
			}
			logger.Info("released", "key", e.Key, "token", e.Token, "held", e.Held, "left", e.Remaining, "err", e.Err)
		},
		Lost: func(e redlock.LostEvent) {
			lost.Add(1)
			logger.Error("lost", "key", e.Key, "token", e.Token, "held", e.Held, "err", e.Err)
		},
		Node: func(e redlock.NodeEvent) {
			logger.Warn("node", "node", e.Node, "up", e.Up, "err", e.Err)
		},
	}
	locker, err := redlock.Dial(urls, redlock.Config{Trace: trace})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
}

// A short TTL for most locks, a longer one for some, over one set of
// connections.
func ExampleLocker_WithTTL() {
	locker, err := redlock.Dial(urls, redlock.Config{TTL: 3 * time.Second, MaxTTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	slow, err := locker.WithTTL(time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := slow.TryAcquire(context.Background(), "rebuild:index")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Remaining() > 50*time.Second)
	lease.Release(context.Background())
}
