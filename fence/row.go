package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

var (
	// ErrCondition says that a write was refused by its own condition, such as
	// having enough in stock, while its fence was not stale.
	ErrCondition = errors.New("condition not met")

	// ErrNoRow says that there is no such row to write to.
	ErrNoRow = errors.New("no such row")
)

// Row is a row that remembers the fence of its last write in a column of its
// own. It takes one write from each lease:
//
//	UPDATE product_stock SET available = available - 1, last_fence = $1
//	WHERE product_id = $2 AND available >= 1 AND last_fence < $1
//
// The comparison is strict, so that a write that is sent twice is done once. A
// lease that writes several times, or writes what it has computed from an
// earlier read that the condition does not compare, uses a [Table].
//
// Table, Where and Fence are the program's own words, never input. It is written
// for PostgreSQL.
type Row struct {
	// Table is the name of the row's table, quoted as that of [Table].
	Table string

	// Where is the condition that is true for this row alone, such as
	// "product_id = $1".
	Where string

	// Args are the values of $1 and so on in Where.
	Args []any

	// Fence is the name of the column, BIGINT NOT NULL, in which a row that no
	// lease has written to has 0. It is quoted as well. Empty means
	// "last_fence".
	Fence string
}

// Update changes the row as set says, such as "available = available - $2", and
// sets its fence to t, if the condition holds, such as "available >= $2", and no
// fence as large as t has been there. An empty condition always holds. The
// placeholders in set and condition count on from those in Where: args begin at
// $len(r.Args)+1. Both are the program's own words, never input.
//
// If nothing was written, the error wraps [ErrStale], [ErrCondition] or
// [ErrNoRow]. ErrStale is also what a second write of the same lease gets: after
// a commit of which it is not known whether it has come through, it says that t
// or a larger fence is there. These three leave the transaction as it was. Any
// other error is the database's, can be told by errors.As, and leaves nothing
// but to roll back.
//
// It waits for transactions that have written to the row and not ended, or until
// ctx ends.
//
// # Isolation
//
//   - READ COMMITTED: a write that had to wait decides by the row as it was
//     committed meanwhile. The reason is looked for in a second statement: a row
//     that another transaction adds in between counts as ErrCondition.
//   - REPEATABLE READ and SERIALIZABLE: a write to a row that was changed since
//     the transaction's first statement fails with SQLSTATE 40001, unless the
//     row was out of question already as it was then; that is what the reason
//     goes by, too. With SERIALIZABLE, any statement and the commit may fail so.
//     The transaction is rolled back and begun again, with the same fence.
func (r Row) Update(ctx context.Context, tx *sql.Tx, t Token, set, condition string, args ...any) error {
	if err := t.check(); err != nil {
		return err
	}
	table, column, err := r.names()
	if err != nil {
		return err
	}
	all := append(append(append([]any{}, r.Args...), args...), int64(t))
	result, err := tx.ExecContext(ctx, update(table, column, r.Where, set, condition, len(all)), all...)
	if err != nil {
		return fmt.Errorf("update %s: %w", table, err)
	}
	rows, err := result.RowsAffected()
	switch {
	case err != nil:
		return fmt.Errorf("update %s: %w", table, err)
	case rows == 0:
		return r.Refusal(ctx, tx, t)
	case rows > 1:
		return fmt.Errorf("update %s: %d rows, want one: %s", table, rows, r.Where)
	}
	return nil
}

// Refusal says why a conditional write of t to the row, one that was written by
// hand, has changed nothing. It is asked in the same transaction, after the
// write. The error wraps [ErrStale], [ErrCondition] or [ErrNoRow], or is the
// database's; it is never nil.
func (r Row) Refusal(ctx context.Context, tx *sql.Tx, t Token) error {
	table, column, err := r.names()
	if err != nil {
		return err
	}
	// A later statement than the write, never a part of it: one statement sees
	// the table as it was at its beginning, before it waited for the row, and
	// would find the old fence and call it the condition.
	var last int64
	err = tx.QueryRowContext(ctx, "SELECT "+column+" FROM "+table+" WHERE "+r.Where, r.Args...).Scan(&last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("write to %s with fence %s: %w", table, t, ErrNoRow)
	case err != nil:
		return fmt.Errorf("fence of %s: %w", table, err)
	case written(t, Token(last)):
		return fmt.Errorf("write to %s with fence %s: %w: %d is there", table, t, ErrStale, last)
	}
	return fmt.Errorf("write to %s with fence %s: %w", table, t, ErrCondition)
}

// written is whether a row whose last write had the fence last refuses t, where
// one write is all that a lease has.
func written(t, last Token) bool { return t <= last }

// update is the statement that writes to the row; its last placeholder, number
// token, is the fence.
func update(table, column, where, set, condition string, token int) string {
	if condition != "" {
		condition = " AND (" + condition + ")"
	}
	return fmt.Sprintf("UPDATE %s SET %s, %s = $%d WHERE (%s)%s AND %s < $%d",
		table, set, column, token, where, condition, column, token)
}

// names are the table's and the column's, quoted.
func (r Row) names() (table, column string, err error) {
	fence := r.Fence
	if fence == "" {
		fence = "last_fence"
	}
	if table, err = quotedTable(r.Table); err != nil {
		return "", "", err
	}
	if column, err = quoted(fence); err != nil {
		return "", "", err
	}
	return table, column, nil
}
