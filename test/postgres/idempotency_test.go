package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/pgstore"
	"github.com/quorumlock/quorumlock/idempotency/storetest"
)

var (
	order    = idempotency.Key{Operation: "orders", Principal: "u1001", Value: "req-001"}
	printOfX = fingerprint.Print("v1:x")
	asked    = idempotency.Request{Key: order, Fingerprint: printOfX}
)

// records is a store in a database of its own, whose other tables the statements
// make.
func records(t *testing.T, statements string, changes ...func(*pgx.ConnConfig)) (*sql.DB, *pgstore.Store) {
	t.Helper()
	s, err := pgstore.New(nil, pgstore.Config{})
	must(t, err)
	db := database(t, s.Schema()+";"+statements, changes...)
	s, err = pgstore.New(db, pgstore.Config{})
	must(t, err)
	return db, s
}

// elapse moves a record's times back, which is all of the server's clock that
// there is to it.
func elapse(db *sql.DB) func(context.Context, idempotency.Key, time.Duration) error {
	return func(ctx context.Context, k idempotency.Key, d time.Duration) error {
		_, err := db.ExecContext(ctx, `UPDATE idempotency_record SET
			lease_until = lease_until - $2::bigint * interval '1 microsecond',
			started_at = started_at - $2::bigint * interval '1 microsecond',
			expires_at = expires_at - $2::bigint * interval '1 microsecond'
			WHERE key = $1`, k.String(), d.Microseconds())
		return err
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	db, s := records(t, "")
	storetest.Run(t, storetest.Subject{
		Store:  s,
		Elapse: elapse(db),
		Forget: func(ctx context.Context, k idempotency.Key) error {
			_, err := db.ExecContext(ctx, "DELETE FROM idempotency_record WHERE key = $1", k.String())
			return err
		},
	})
}
