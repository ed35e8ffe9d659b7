package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// serialization is the SQLSTATE of a transaction that has to be begun again.
const serialization = "40001"

// every is every isolation level that PostgreSQL knows.
var every = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// session is an open transaction, and the process of the server's that it has.
type session struct {
	*sql.Tx
	db  *sql.DB
	pid int
}

// begin begins a transaction that is rolled back at the end of the test, unless
// it has ended by then. It takes no snapshot yet.
func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), hang)
	t.Cleanup(cancel)
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &session{db: db}
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&s.pid); err != nil {
		t.Fatal(err)
	}
	if s.Tx, err = conn.BeginTx(ctx, &sql.TxOptions{Isolation: level}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Rollback() })
	return s
}

// whileWaiting starts act, which must come to wait for another transaction; then
// it runs meanwhile, and returns what act returns. Only whoever is waited for can
// let act go on, so meanwhile happens while it waits.
func (s *session) whileWaiting(t *testing.T, act func() error, meanwhile func()) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- act() }()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for waits := false; !waits; {
		select {
		case err := <-done:
			t.Fatalf("did not have to wait: %v", err)
		case <-tick.C:
		}
		err := s.db.QueryRowContext(ctx, "SELECT cardinality(pg_blocking_pids($1)) > 0", s.pid).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	meanwhile()
	return <-done
}

// is fails the test if err is not what was wanted.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// state is the SQLSTATE of the database's error in err.
func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// number is what a query for one number finds, outside all transactions.
func number(t *testing.T, db *sql.DB, query string) int64 {
	t.Helper()
	var n int64
	must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}
