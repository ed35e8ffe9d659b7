package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/fence"
)

const fences = fence.Table("")

const (
	stock     = "stock:42"
	last      = "SELECT last FROM fence WHERE resource = 'stock:42'"
	available = "SELECT available FROM product_stock WHERE product_id = 42"

	schema = fence.Schema + `;
		CREATE TABLE product_stock (
			product_id bigint PRIMARY KEY,
			available  bigint NOT NULL CHECK (available >= 0),
			last_fence bigint NOT NULL DEFAULT 0
		)`
)

// stocked puts ten of product 42 into the database and nothing else; where seen is
// not zero, that is the largest fence that the stock has seen.
func stocked(t *testing.T, db *sql.DB, seen fence.Token) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "TRUNCATE fence, product_stock")
	must(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO product_stock VALUES (42, 10, $1)", seen)
	must(t, err)
	if seen != 0 {
		_, err = db.ExecContext(t.Context(), "INSERT INTO fence VALUES ($1, $2)", stock, seen)
		must(t, err)
	}
}

func (s *session) claim(t *testing.T, token fence.Token) error {
	t.Helper()
	return fences.Claim(context.WithoutCancel(t.Context()), s.Tx, stock, token)
}

func (s *session) read(t *testing.T) int64 {
	t.Helper()
	var n int64
	must(t, s.QueryRowContext(t.Context(), available).Scan(&n))
	return n
}

func (s *session) write(t *testing.T, n int64) {
	t.Helper()
	_, err := s.ExecContext(t.Context(), "UPDATE product_stock SET available = $1 WHERE product_id = 42", n)
	must(t, err)
}

func TestClaimRefusesALateHolder(t *testing.T) {
	db := database(t, schema)
	for _, level := range every {
		t.Run(level.String(), func(t *testing.T) {
			stocked(t, db, 0)
			for _, step := range []struct {
				token fence.Token
				want  error
				last  int64
			}{
				{41, nil, 41},
				{42, nil, 42},
				{41, fence.ErrStale, 42},
				{42, nil, 42}, // the same lease, in its next transaction
				{1_800_000_000_000_000, nil, 1_800_000_000_000_000},
				{1<<53 - 1, nil, 1<<53 - 1},
				{1<<53 - 2, fence.ErrStale, 1<<53 - 1},
			} {
				tx := begin(t, db, level)
				is(t, step.token.String(), tx.claim(t, step.token), step.want)
				must(t, tx.Commit())
				if got := number(t, db, last); got != step.last {
					t.Errorf("after %s the largest fence is %d, want %d", step.token, got, step.last)
				}
			}
			tx := begin(t, db, level)
			is(t, "1 at another resource", fences.Claim(t.Context(), tx.Tx, "stock:43", 1), nil)
		})
	}
}

// Two transactions are open at once, and the second finds the resource claimed by
// the first: it waits, and what it gets depends on how the first ends.
func TestClaimsTakeTurns(t *testing.T) {
	db := database(t, schema)
	for _, resource := range []struct {
		name string
		seen fence.Token
	}{
		{"a resource never claimed", 0},
		{"a resource that has seen 40", 40},
	} {
		for _, c := range []struct {
			name          string
			first, second fence.Token
			commit        bool
			want          error
		}{
			{"the late holder was first", 41, 42, true, nil},
			{"the new holder was first", 42, 41, true, fence.ErrStale},
			{"the new holder was first and rolled back", 42, 41, false, nil},
			{"one lease twice", 42, 42, true, nil},
		} {
			for _, level := range every {
				t.Run(resource.name+"/"+c.name+"/"+level.String(), func(t *testing.T) {
					stocked(t, db, resource.seen)
					one, two := begin(t, db, level), begin(t, db, level)
					must(t, one.claim(t, c.first))
					one.write(t, one.read(t)-1)
					err := two.whileWaiting(t, func() error { return two.claim(t, c.second) }, func() {
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
						err = two.claim(t, c.second)
					}
					is(t, "second", err, c.want)
					if err != nil {
						return
					}
					two.write(t, two.read(t)-1)
					must(t, two.Commit())
					want := int64(8)
					if !c.commit {
						want = 9
					}
					if got := number(t, db, available); got != want {
						t.Errorf("%d left, want %d: the second did not read what the first wrote", got, want)
					}
				})
			}
		}
	}
}

// The late holder 41 runs in the middle of the transaction of 42.
func TestOnlyAClaimBeforeTheFirstReadSavesTheUpdate(t *testing.T) {
	db := database(t, schema)
	t.Run("claim at the first write", func(t *testing.T) {
		for _, level := range every {
			t.Run(level.String(), func(t *testing.T) {
				stocked(t, db, 40)
				late, rightful := begin(t, db, level), begin(t, db, level)

				seen := rightful.read(t)
				seenLate := late.read(t)
				must(t, late.claim(t, 41)) // nothing newer has been here yet
				late.write(t, seenLate-1)
				must(t, late.Commit())
				err := rightful.claim(t, 42)

				if level != every[0] {
					if state(err) != serialization {
						t.Errorf("42: %v, want SQLSTATE %s", err, serialization)
					}
					return
				}
				must(t, err)
				rightful.write(t, seen-1)
				must(t, rightful.Commit())
				if got := number(t, db, available); got != 9 {
					t.Errorf("%d left: want 9, two sold and one missing, or there is nothing to be saved", got)
				}
			})
		}
	})

	t.Run("claim on entry", func(t *testing.T) {
		for _, level := range every {
			t.Run(level.String(), func(t *testing.T) {
				stocked(t, db, 40)
				late, rightful := begin(t, db, level), begin(t, db, level)

				must(t, rightful.claim(t, 42))
				err := late.whileWaiting(t, func() error { return late.claim(t, 41) }, func() {
					rightful.write(t, rightful.read(t)-1)
					must(t, rightful.Commit())
				})
				if level != every[0] {
					if state(err) != serialization {
						t.Errorf("41: %v, want SQLSTATE %s", err, serialization)
					}
					must(t, late.Rollback())
					err = begin(t, db, level).claim(t, 41)
				}
				is(t, "41", err, fence.ErrStale)
				if got := number(t, db, available); got != 9 {
					t.Errorf("%d left, want 9: one sold and one missing", got)
				}
			})
		}
	})
}

func TestAClaimThatIsCancelledLeavesNothing(t *testing.T) {
	db := database(t, schema)
	stocked(t, db, 40)
	one, two := begin(t, db, every[0]), begin(t, db, every[0])
	must(t, one.claim(t, 41))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := two.whileWaiting(t, func() error { return fences.Claim(ctx, two.Tx, stock, 42) }, cancel)
	is(t, "42", err, context.Canceled)
	two.Rollback()
	must(t, one.Commit())
	if got := number(t, db, last); got != 41 {
		t.Errorf("the largest fence is %d, want 41", got)
	}
}

// A holder that sits in its transaction keeps the others out until the database
// ends its session.
func TestAHolderPausedInItsTransactionIsEndedByTheDatabase(t *testing.T) {
	db := database(t, schema)
	stocked(t, db, 40)
	paused, next := begin(t, db, every[0]), begin(t, db, every[0])
	must(t, paused.claim(t, 41))
	paused.write(t, paused.read(t)-1)
	err := next.whileWaiting(t, func() error { return next.claim(t, 42) }, func() {
		_, err := paused.ExecContext(t.Context(), "SET idle_in_transaction_session_timeout = '1ms'")
		must(t, err)
	})
	is(t, "42", err, nil)
	if got := next.read(t); got != 10 {
		t.Errorf("42 reads %d, want 10", got)
	}
	must(t, next.Commit())
	if err := paused.Commit(); err == nil {
		t.Error("the paused holder committed")
	}
	if got := number(t, db, available); got != 10 {
		t.Errorf("%d left, want 10", got)
	}
}

func TestClaimPassesOnWhatTheDatabaseSays(t *testing.T) {
	db := database(t, schema)
	err := fence.Table("elsewhere.fence").Claim(t.Context(), begin(t, db, every[0]).Tx, stock, 42)
	if state(err) != "42P01" || errors.Is(err, fence.ErrStale) {
		t.Errorf("a table that is not there: %v", err)
	}
	for _, name := range []fence.Table{`fence"`, "a.b.c", "fence; DROP TABLE fence"} {
		if err := name.Claim(t.Context(), begin(t, db, every[0]).Tx, stock, 42); err == nil || state(err) != "" {
			t.Errorf("table %q: %v, want it refused before the database is asked", name, err)
		}
	}
	for _, token := range []fence.Token{-1, 0, 1 << 53} {
		if err := fences.Claim(t.Context(), begin(t, db, every[0]).Tx, stock, token); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("fence %s: %v", token, err)
		}
	}
}

func TestTheTableMayHaveAnotherName(t *testing.T) {
	db := database(t, `
		DROP SCHEMA IF EXISTS "Shop" CASCADE;
		CREATE SCHEMA "Shop";
		CREATE TABLE "Shop"."order" (resource text PRIMARY KEY, last bigint NOT NULL)
	`)
	const fences fence.Table = "Shop.order"
	tx := begin(t, db, every[0])
	is(t, "42", fences.Claim(t.Context(), tx.Tx, stock, 42), nil)
	is(t, "41", fences.Claim(t.Context(), tx.Tx, stock, 41), fence.ErrStale)
	must(t, tx.Commit())
	if got := number(t, db, `SELECT last FROM "Shop"."order"`); got != 42 {
		t.Errorf("the largest fence is %d, want 42", got)
	}
}
