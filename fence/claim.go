package fence

import (
	"context"
	"database/sql"
	"fmt"
)

// Schema makes the table that [Table] needs, under the default name. It has one
// row per resource, which must stay as long as late holders may come. For
// another name, use it with that name in the place of this.
//
// The collation is C because the order and equality of its text never change:
// an index on another one may have to be rebuilt after an upgrade of the
// system's C library, and until then find a resource's row or make it anew.
const Schema = `CREATE TABLE IF NOT EXISTS fence (
	resource text   COLLATE "C" PRIMARY KEY,
	last     bigint NOT NULL
)`

// Table is the name of the table, made by [Schema], that remembers the largest
// fence of each resource. It may have its schema before it, as in
// "shop.fence". Empty means "fence". It is quoted, so case counts, and a table
// that was created without quotes has a name in lower case.
//
// It is written for PostgreSQL.
type Table string

// claim takes the row's lock before it compares, and compares with what has been
// committed by then. An equal fence is the same lease, in its next transaction.
const claim = `INSERT INTO %s AS seen (resource, last) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET last = EXCLUDED.last WHERE seen.last <= EXCLUDED.last`

// Claim enters the resource with the fence t for the rest of the transaction. It
// is the first statement of a transaction on the resource: whatever the
// transaction's writes depend on is read after it, and in the same transaction.
// (What happens otherwise is shown at the top of this page.)
//
// It waits for transactions that have claimed the resource and not ended, or
// until ctx ends. Then no other transaction enters until this one has ended. If
// a larger fence has been committed, the error wraps [ErrStale]; nothing has
// changed, and the caller rolls back. Any other error is the database's, and can
// be told by errors.As.
//
// When the transaction commits, t is the largest fence of the resource and every
// smaller one is refused from then on. When it is rolled back, by a lost
// connection too, t has not been there, and neither have its writes. The same
// lease may claim as often as it likes, also when it does not know whether its
// last commit has come through.
//
// A holder that is paused inside its transaction keeps everybody out, until the
// database ends its session: set idle_in_transaction_session_timeout, and begin
// the transaction with the context of the lease. Several resources are claimed
// in the same order everywhere, or transactions deadlock.
//
// # Isolation
//
// It holds at every level:
//
//   - READ COMMITTED: a claim that had to wait compares with the fence that was
//     committed meanwhile, and later statements see what was committed with it.
//     Only here can reading before the claim lose an update unnoticed.
//   - REPEATABLE READ: a claim that had to wait for one that then commits
//     fails with SQLSTATE 40001, even when its fence is larger, and so does one
//     that follows reads from before such a commit. The transaction is rolled
//     back and begun again, with the same fence.
//   - SERIALIZABLE: the same, and any statement or the commit may fail with 40001
//     as well.
func (name Table) Claim(ctx context.Context, tx *sql.Tx, resource string, t Token) error {
	if err := t.check(); err != nil {
		return err
	}
	table, err := quotedTable(name.orDefault())
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, fmt.Sprintf(claim, table), resource, int64(t))
	if err != nil {
		return fmt.Errorf("claim %q: %w", resource, err)
	}
	entered, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("claim %q: %w", resource, err)
	}
	if entered == 0 {
		return fmt.Errorf("claim %q with fence %s: %w", resource, t, ErrStale)
	}
	return nil
}

func (name Table) orDefault() string {
	if name == "" {
		return "fence"
	}
	return string(name)
}
