package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/quorumlock/quorumlock/test/postgres/pgproc"
)

// hang is when a test that still waits is given up.
const hang = time.Minute

// server is where every test has a schema of its own: a database for each would
// take most of the time. It is nil where there is no PostgreSQL.
var server *pgproc.Server

func TestMain(m *testing.M) {
	os.Exit(onServer(m))
}

func onServer(m *testing.M) int {
	if _, err := pgproc.Find(); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		if server, err = pgproc.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Close()
	}
	return m.Run()
}

var schemas atomic.Int32

// database is a pool whose sessions work in a new schema, in which the statements
// have been run. Changes, if any, are made to how it connects.
func database(t testing.TB, statements string, changes ...func(*pgx.ConnConfig)) *sql.DB {
	t.Helper()
	pgproc.Require(t)
	config, err := pgx.ParseConfig(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("test%d", schemas.Add(1))
	config.RuntimeParams["search_path"] = schema
	run(t, config, "CREATE SCHEMA "+schema+"; "+statements)
	t.Cleanup(func() { run(t, config, "DROP SCHEMA "+schema+" CASCADE") })

	pooled := config.Copy()
	for _, change := range changes {
		change(pooled)
	}
	db := stdlib.OpenDB(*pooled)
	t.Cleanup(func() { db.Close() })
	return db
}

// run runs statements, separated by semicolons, in a session of their own.
func run(t testing.TB, config *pgx.ConnConfig, statements string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), hang)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", strings.TrimSpace(statements), err)
	}
}
