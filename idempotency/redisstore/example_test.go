package redisstore_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/redisstore"
)

// The example needs a Redis server to run; it is compiled here.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", ContextTimeoutEnabled: true})
	store := redisstore.New(client, redisstore.Config{})
	if err := store.Check(context.Background()); err != nil {
		log.Print("records may get lost: ", err)
	}
	guard, err := idempotency.New(store, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_ = guard
}
