package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/pgstore"
)

// The order and the record are committed together. The example needs PostgreSQL
// to run; it is compiled here.
func ExampleStore_CompleteTx() {
	db, err := sql.Open("pgx", "postgres://10.0.0.1/shop")
	if err != nil {
		log.Fatal(err)
	}
	store, err := pgstore.New(db, pgstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := idempotency.New(store, idempotency.Config{
		// The late writer is refused by CompleteTx, so finding no order is an answer.
		Reconciler: func(ctx context.Context, r idempotency.Record) (idempotency.Verdict, error) {
			var id string
			err := db.QueryRowContext(ctx, "SELECT id FROM orders WHERE user_id = $1 AND idempotency_key = $2",
				r.Key.Principal, r.Key.Value).Scan(&id)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return idempotency.DidNotHappen(), nil
			case err != nil:
				return idempotency.Verdict{}, err
			}
			return idempotency.Happened(idempotency.Result{Response: []byte(id)}), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	request := idempotency.Request{
		Key:         idempotency.Key{Operation: "orders", Principal: "u1001", Value: "req-001"},
		Fingerprint: "v1:…",
	}
	result, _, err := guard.Do(context.Background(), request, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		placed := idempotency.Result{Response: []byte("o1001")}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return idempotency.Result{}, idempotency.NoEffect(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, user_id, idempotency_key) VALUES ('o1001', $1, $2)",
			ex.Key.Principal, ex.Key.Value); err != nil {
			return idempotency.Result{}, idempotency.NoEffect(err) // the transaction is rolled back
		}
		if err := store.CompleteTx(ctx, tx, ex, placed); err != nil {
			return idempotency.Result{}, err
		}
		return placed, tx.Commit()
	})
	log.Printf("%s %v", result.Response, err)
}
