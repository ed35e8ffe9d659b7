package postgres

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorumlock/fence"
)

// The connection of 42 is lost between its claim and its commit: then 42 has not
// been there, and 41, who has not been refused, may still finish.
func TestAClaimGoesWithItsConnection(t *testing.T) {
	db := database(t, schema)
	stocked(t, db, 40)
	holder, late := begin(t, db, every[0]), begin(t, db, every[0])
	must(t, holder.claim(t, 42))
	holder.write(t, holder.read(t)-1)
	err := late.whileWaiting(t, func() error { return late.claim(t, 41) }, func() {
		var ended bool
		must(t, db.QueryRowContext(t.Context(), "SELECT pg_terminate_backend($1)", holder.pid).Scan(&ended))
		if !ended {
			t.Fatal("the session was not there to be ended")
		}
	})
	is(t, "41", err, nil)
	if err := holder.Commit(); err == nil {
		t.Error("42 has committed")
	}
	late.write(t, late.read(t)-1)
	must(t, late.Commit())
	if got := number(t, db, available); got != 9 {
		t.Errorf("%d left, want 9", got)
	}
	if got := number(t, db, last); got != 41 {
		t.Errorf("the largest fence is %d, want 41", got)
	}
}

// lossy is a connection that can be told to lose what it is sent next.
type lossy struct {
	net.Conn
	lose *atomic.Bool
}

// Read loses an answer only after it has come: what it answers has happened.
func (c *lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.lose.CompareAndSwap(true, false) {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// losing makes connections lose the next answer when lose is set.
func losing(lose *atomic.Bool) func(*pgx.ConnConfig) {
	return func(c *pgx.ConnConfig) {
		dial := c.DialFunc
		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &lossy{conn, lose}, err
		}
	}
}

// The answer to a commit is lost, and the same lease comes again to see: its claim
// is accepted and shows it what it has done, its row says that it was written.
func TestALeaseMayComeAgainAfterALostCommit(t *testing.T) {
	var lose atomic.Bool
	db := database(t, schema, losing(&lose))
	stocked(t, db, 40)
	tx := begin(t, db, every[0])
	must(t, tx.claim(t, 42))
	must(t, tx.take(t, 42, 1))
	lose.Store(true)
	if err := tx.Commit(); err == nil || lose.Load() {
		t.Fatalf("the commit's answer was not lost: %v", err)
	}
	row(t, db, 9, 42) // committed

	tx = begin(t, db, every[0])
	is(t, "claim again", tx.claim(t, 42), nil)
	if got := tx.read(t); got != 9 {
		t.Errorf("42 reads %d, want the 9 that it has left", got)
	}
	is(t, "write again", tx.take(t, 42, 1), fence.ErrStale)
	must(t, tx.Commit())
	row(t, db, 9, 42)
}
