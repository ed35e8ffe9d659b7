package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/pgstore"
)

// Sessions are ended by the server again and again while many retries of some
// intents run: at claims, renewals, in transactions, at commits. No constraint
// keeps two orders apart: only that each is committed with its record, and that
// who takes over asks first. Either would do here; without both of them there are
// two orders.
func TestEndedSessionsLeaveOneOrderForEachIntent(t *testing.T) {
	const intents, workers, calls = 60, 8, 80
	db, s := records(t, "CREATE TABLE orders (intent text)", func(c *pgx.ConnConfig) {
		c.RuntimeParams["application_name"] = "ended"
	})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	g := guard(t, s, idempotency.Config{
		Lease: time.Second, UnknownRetry: 20 * time.Millisecond, Reconciler: func(ctx context.Context, r idempotency.Record) (idempotency.Verdict, error) {
			var n int
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE intent = $1", r.Key.Value).Scan(&n)
			if err != nil || n > 0 {
				return idempotency.Happened(idempotency.Result{Response: []byte(r.Key.Value)}), err
			}
			return idempotency.DidNotHappen(), nil
		},
	})

	admin, err := pgx.ConnectConfig(ctx, adminConfig(t))
	must(t, err)
	defer admin.Close(context.WithoutCancel(ctx))
	working, done := context.WithCancel(ctx)
	var ended int
	var all sync.WaitGroup
	var reaper sync.WaitGroup
	reaper.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for working.Err() == nil {
			var n int
			err := admin.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM
				(SELECT pid FROM pg_stat_activity WHERE application_name = 'ended' ORDER BY random() LIMIT 3) AS chosen`).Scan(&n)
			if err != nil {
				t.Error(err)
				return
			}
			ended += n
			<-tick.C
		}
	})
	var failed, answered atomic.Int32
	for w := range workers {
		all.Go(func() {
			for i := range calls {
				if err := place(ctx, db, s, g, fmt.Sprint("intent ", (w+i)%intents)); err != nil {
					failed.Add(1)
				} else {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	done()
	reaper.Wait()
	t.Logf("%d sessions ended; of the calls %d were answered, %d failed", ended, answered.Load(), failed.Load())
	if ended == 0 || failed.Load() == 0 {
		t.Error("nothing went wrong")
	}

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range intents {
		intent := fmt.Sprint("intent ", i)
		for err := place(ctx, db, s, g, intent); err != nil; err = place(ctx, db, s, g, intent) {
			if ctx.Err() != nil {
				t.Fatalf("%s: it never came to an end: %v", intent, err)
			}
			<-tick.C
		}
		var n int
		must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE intent = $1", intent).Scan(&n))
		if n != 1 {
			t.Errorf("%s: %d orders", intent, n)
		}
	}
}

// place asks for the intent and returns an error unless it is answered.
func place(ctx context.Context, db *sql.DB, s *pgstore.Store, g *idempotency.Guard, intent string) error {
	r := idempotency.Request{Key: idempotency.Key{Operation: "orders", Principal: "u1001", Value: intent}, Fingerprint: printOfX}
	result, _, err := g.Do(ctx, r, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return idempotency.Result{}, idempotency.NoEffect(err)
		}
		defer tx.Rollback()
		placed := idempotency.Result{Response: []byte(intent)}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1)", intent); err != nil {
			return idempotency.Result{}, idempotency.NoEffect(err)
		}
		if err := s.CompleteTx(ctx, tx, ex, placed); err != nil {
			return idempotency.Result{}, err
		}
		return placed, tx.Commit()
	})
	if err == nil && string(result.Response) != intent {
		return fmt.Errorf("answered %q", result.Response)
	}
	return err
}

// adminConfig connects to the server beside the pools of tests.
func adminConfig(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(server.DSN("postgres"))
	must(t, err)
	return config
}
