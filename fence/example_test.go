package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
)

func ExampleGate() {
	var gate fence.Gate // one for the stock, beside it
	available := 10
	take := func(t fence.Token) error {
		return gate.Do(t, func() error {
			available--
			return nil
		})
	}

	// The holder of 41 is paused, its lock ends, and 42 is the next.
	fmt.Println("42:", take(42))
	fmt.Println("41:", take(41))
	fmt.Println("left:", available)
	// Output:
	// 42: <nil>
	// 41: fence 41: stale fence: 42 has come before
	// left: 9
}

// The transaction may read and write as it likes, after it has claimed what it
// reads. It is begun with the context of the lease, so that it does not outlive
// it by much, and with fence.Schema applied to the database.
func ExampleTable_Claim() {
	const fences = fence.Table("shop.fence")

	take := func(ctx context.Context, db *sql.DB, t fence.Token) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fences.Claim(ctx, tx, "stock:42", t); err != nil {
			return err
		}
		var available int
		err = tx.QueryRowContext(ctx, "SELECT available FROM product_stock WHERE product_id = 42").Scan(&available)
		if err != nil {
			return err
		}
		if available == 0 {
			return errors.New("sold out")
		}
		_, err = tx.ExecContext(ctx, "UPDATE product_stock SET available = $1 WHERE product_id = 42", available-1)
		if err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = take // with lease.Context() and lease.Fence()
}

func ExampleRow_Update() {
	take := func(ctx context.Context, tx *sql.Tx, t fence.Token, product int64, n int) error {
		stock := fence.Row{Table: "product_stock", Where: "product_id = $1", Args: []any{product}}
		err := stock.Update(ctx, tx, t, "available = available - $2", "available >= $2", n)
		switch {
		case errors.Is(err, fence.ErrStale):
			return fmt.Errorf("no longer the holder: stop: %w", err)
		case errors.Is(err, fence.ErrCondition):
			return fmt.Errorf("sold out: tell the customer: %w", err)
		case errors.Is(err, fence.ErrNoRow):
			return fmt.Errorf("no such product: %w", err)
		}
		return err
	}
	_ = take
}

// A statement of one's own, because it returns something.
func ExampleRow_Refusal() {
	take := func(ctx context.Context, tx *sql.Tx, t fence.Token, product int64) (left int, err error) {
		err = tx.QueryRowContext(ctx, `
			UPDATE product_stock SET available = available - 1, last_fence = $1
			WHERE product_id = $2 AND available >= 1 AND last_fence < $1
			RETURNING available`, t, product).Scan(&left)
		if errors.Is(err, sql.ErrNoRows) {
			stock := fence.Row{Table: "product_stock", Where: "product_id = $1", Args: []any{product}}
			return 0, stock.Refusal(ctx, tx, t)
		}
		return left, err
	}
	_ = take
}

func ExampleRedis() {
	client := redis.NewClient(&redis.Options{Addr: "10.0.0.9:6379"})
	guard := fence.Redis(func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		return redis.NewScript(script).Run(ctx, client, keys, args...).Result()
	})

	raise := func(ctx context.Context, t fence.Token) error {
		if err := guard.Claim(ctx, "{price:42}:fence", t); err != nil {
			return err
		}
		price, err := client.Get(ctx, "{price:42}").Int()
		if err != nil {
			return err
		}
		_, err = guard.Run(ctx, "{price:42}:fence", t, "return redis.call('SET', KEYS[2], ARGV[2])",
			[]string{"{price:42}"}, price+1)
		return err
	}
	_ = raise
}
