package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/fence"
)

var stockRow = fence.Row{Table: "product_stock", Where: "product_id = $1", Args: []any{42}}

// take takes n away, if there are so many.
func (s *session) take(t *testing.T, token fence.Token, n int) error {
	t.Helper()
	return stockRow.Update(context.WithoutCancel(t.Context()), s.Tx, token,
		"available = available - $2", "available >= $2", n)
}

// row expects what is in the row, outside all transactions.
func row(t *testing.T, db *sql.DB, available, lastFence int64) {
	t.Helper()
	var a, f int64
	must(t, db.QueryRowContext(t.Context(), "SELECT available, last_fence FROM product_stock WHERE product_id = 42").Scan(&a, &f))
	if a != available || f != lastFence {
		t.Errorf("%d left by fence %d, want %d by %d", a, f, available, lastFence)
	}
}

// takeByHand is a statement of a program's own, and Refusal where it wrote nothing.
func takeByHand(t *testing.T, s *session, token fence.Token, n int) error {
	t.Helper()
	var left int64
	var by fence.Token
	err := s.QueryRowContext(t.Context(), `
		UPDATE product_stock SET available = available - $3, last_fence = $1
		WHERE product_id = $2 AND available >= $3 AND last_fence < $1
		RETURNING available, last_fence`, token, 42, n).Scan(&left, &by)
	if errors.Is(err, sql.ErrNoRows) {
		return stockRow.Refusal(t.Context(), s.Tx, token)
	}
	if err == nil && by != token {
		t.Errorf("%s wrote as %s", token, by)
	}
	return err
}

func TestRowTellsWhyNothingWasWritten(t *testing.T) {
	db := database(t, schema)
	for _, form := range []struct {
		name string
		take func(*testing.T, *session, fence.Token, int) error
	}{
		{"Update", func(t *testing.T, s *session, token fence.Token, n int) error { return s.take(t, token, n) }},
		{"by hand", takeByHand},
	} {
		t.Run(form.name, func(t *testing.T) {
			stocked(t, db, 40)
			for _, step := range []struct {
				token     fence.Token
				n         int
				want      error
				available int64
				lastFence int64
			}{
				{42, 1, nil, 9, 42}, // while 41 is paused
				{41, 1, fence.ErrStale, 9, 42},
				{42, 1, fence.ErrStale, 9, 42}, // one write each
				{43, 10, fence.ErrCondition, 9, 42},
				{41, 10, fence.ErrStale, 9, 42}, // both; a stale holder stops whatever else
				{43, 9, nil, 0, 43},
				{44, 1, fence.ErrCondition, 0, 43},
				{1<<53 - 1, 0, nil, 0, 1<<53 - 1},
				{1<<53 - 2, 0, fence.ErrStale, 0, 1<<53 - 1},
			} {
				tx := begin(t, db, every[0])
				err := form.take(t, tx, step.token, step.n)
				is(t, step.token.String(), err, step.want)
				for _, other := range []error{fence.ErrStale, fence.ErrCondition, fence.ErrNoRow} {
					if other != step.want && errors.Is(err, other) {
						t.Errorf("%s: %v is two things", step.token, err)
					}
				}
				must(t, tx.Commit())
				row(t, db, step.available, step.lastFence)
			}
			_, err := db.ExecContext(t.Context(), "DELETE FROM product_stock")
			must(t, err)
			is(t, "no row", form.take(t, begin(t, db, every[0]), 1<<53-1, 1), fence.ErrNoRow)
		})
	}
}

// Two transactions write to the row at once: the second waits, and decides by
// what the first leaves.
func TestWritesToARowTakeTurns(t *testing.T) {
	db := database(t, schema)
	for _, c := range []struct {
		name                 string
		first, second        fence.Token
		firstTakes           int
		commit               bool
		want                 error
		available, lastFence int64
	}{
		{"the late holder was first", 41, 42, 1, true, nil, 8, 42},
		{"the new holder was first", 42, 41, 1, true, fence.ErrStale, 9, 42},
		{"the new holder was first and rolled back", 42, 41, 1, false, nil, 9, 41},
		{"the first took all", 41, 42, 10, true, fence.ErrCondition, 0, 41},
		{"the first took all, and is newer", 42, 41, 10, true, fence.ErrStale, 0, 42},
		{"one lease twice", 42, 42, 1, true, fence.ErrStale, 9, 42},
	} {
		for _, level := range every {
			t.Run(c.name+"/"+level.String(), func(t *testing.T) {
				stocked(t, db, 40)
				one, two := begin(t, db, level), begin(t, db, level)
				must(t, one.take(t, c.first, c.firstTakes))
				err := two.whileWaiting(t, func() error { return two.take(t, c.second, 1) }, func() {
					if c.commit {
						must(t, one.Commit())
					} else {
						must(t, one.Rollback())
					}
				})
				if c.commit && level != every[0] {
					if state(err) != serialization {
						t.Errorf("second: %v, want SQLSTATE %s", err, serialization)
					}
					must(t, two.Rollback())
					two = begin(t, db, level)
					err = two.take(t, c.second, 1)
				}
				is(t, "second", err, c.want)
				must(t, two.Commit())
				row(t, db, c.available, c.lastFence)
			})
		}
	}
}

// What a later snapshot would show is not what an earlier one is judged by.
func TestTheReasonGoesByTheSnapshot(t *testing.T) {
	db := database(t, schema)
	for _, level := range every {
		t.Run(level.String(), func(t *testing.T) {
			stocked(t, db, 40)
			old := begin(t, db, level)
			old.read(t)
			next := begin(t, db, every[0])
			must(t, next.take(t, 42, 1))
			must(t, next.Commit())

			want := fence.ErrStale // of two reasons
			if level != every[0] {
				want = fence.ErrCondition // as 42 is in the future, and eleven are too many already
			}
			is(t, "41", old.take(t, 41, 11), want)
			must(t, old.Rollback())
			row(t, db, 9, 42)
		})
	}
}

func TestARowAddedMeanwhileCountsAsTheCondition(t *testing.T) {
	db := database(t, schema)
	tx := begin(t, db, every[0])
	result, err := tx.ExecContext(t.Context(), "UPDATE product_stock SET last_fence = 42 WHERE product_id = 42 AND last_fence < 42")
	must(t, err)
	if n, err := result.RowsAffected(); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO product_stock VALUES (42, 10)") // another session
	must(t, err)
	is(t, "42", stockRow.Refusal(t.Context(), tx.Tx, 42), fence.ErrCondition)
}

func TestRowPassesOnWhatTheDatabaseSays(t *testing.T) {
	db := database(t, schema+`;
		CREATE TABLE "Odd" (id bigint, fence bigint, small integer NOT NULL DEFAULT 0);
		INSERT INTO "Odd" VALUES (1, NULL, 0), (2, 0, 0), (2, 0, 0)`)
	stocked(t, db, 40)
	odd := func(id int, column string) fence.Row {
		return fence.Row{Table: "Odd", Where: "id = $1", Args: []any{id}, Fence: column}
	}
	const token fence.Token = 1_800_000_000_000_000
	for _, c := range []struct {
		name      string
		row       fence.Row
		token     fence.Token
		set       string
		condition string
		state     string // of the database's error, where it is one
	}{
		{"a check of the table's", stockRow, token, "available = -1", "", "23514"},
		{"no such table", fence.Row{Table: "nothing", Where: "TRUE"}, token, "x = 1", "", "42P01"},
		{"no such column", fence.Row{Table: "product_stock", Where: "TRUE", Fence: "nothing"}, token, "available = 1", "", "42703"},
		{"wrong SQL", stockRow, token, "available", "", "42601"},
		{"a row that has NULL", odd(1, "fence"), token, "id = id", "", ""},
		{"two rows", odd(2, "fence"), token, "id = id", "", ""},
		{"a column too small", odd(2, "small"), token, "id = id", "", ""},
		{"a name to be quoted", odd(2, `fence" = 1; --`), token, "id = id", "", ""},
		{"a table to be quoted", fence.Row{Table: `a"b`, Where: "TRUE"}, token, "id = id", "", ""},
		{"no fence", stockRow, 0, "available = 1", "", ""},
		{"a fence too large", stockRow, 1 << 53, "available = 1", "", ""},
	} {
		tx := begin(t, db, every[0])
		err := c.row.Update(t.Context(), tx.Tx, c.token, c.set, c.condition)
		if err == nil || state(err) != c.state || errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrCondition) || errors.Is(err, fence.ErrNoRow) {
			t.Errorf("%s: %v (SQLSTATE %q, want %q)", c.name, err, state(err), c.state)
		}
		must(t, tx.Rollback())
	}
	row(t, db, 10, 40)
}

func TestAnAlternativeInTheConditionDoesNotGetAroundTheFence(t *testing.T) {
	db := database(t, schema)
	stocked(t, db, 40)
	tx := begin(t, db, every[0])
	either := fence.Row{Table: "product_stock", Where: "product_id = $1 OR product_id = $1", Args: []any{42}}
	is(t, "39", either.Update(t.Context(), tx.Tx, 39, "available = 0", "TRUE OR FALSE"), fence.ErrStale)
	is(t, "41", either.Update(t.Context(), tx.Tx, 41, "available = 0", ""), nil)
}
