package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/fence"
)

// goesBack is where in history a fence comes after a larger one, or -1.
func goesBack(history []fence.Token) int {
	for i := 1; i < len(history); i++ {
		if history[i] < history[i-1] {
			return i
		}
	}
	return -1
}

func TestGoesBackFindsABadHistory(t *testing.T) {
	for _, c := range []struct {
		history []fence.Token
		want    int
	}{
		{nil, -1},
		{[]fence.Token{42}, -1},
		{[]fence.Token{41, 41, 42, 1_800_000_000_000_000}, -1},
		{[]fence.Token{41, 42, 41}, 2},
		{[]fence.Token{1 << 52, 1<<52 - 1}, 1},
	} {
		if got := goesBack(c.history); got != c.want {
			t.Errorf("%v: %d, want %d", c.history, got, c.want)
		}
	}
}

// The database keeps the history: a trigger writes down each fence that enters,
// while the resource is locked.
const recorded = schema + `;
	CREATE TABLE entered (n bigserial PRIMARY KEY, resource text NOT NULL, last bigint NOT NULL);
	CREATE FUNCTION enter() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO entered (resource, last) VALUES (NEW.resource, NEW.last);
			RETURN NEW;
		END
	$$;
	CREATE TRIGGER enter AFTER INSERT OR UPDATE ON fence FOR EACH ROW EXECUTE FUNCTION enter()`

// Leases on four resources claim and sell, all at once and each twice.
func TestWhatEntersNeverGoesBackAndNoSaleIsLost(t *testing.T) {
	const resources, leases = 4, 25
	for _, level := range every {
		t.Run(level.String(), func(t *testing.T) {
			db := database(t, recorded)
			db.SetMaxOpenConns(20)
			ctx, cancel := context.WithTimeout(t.Context(), hang)
			defer cancel()
			_, err := db.ExecContext(ctx, "INSERT INTO product_stock SELECT r, $2 FROM generate_series(0, $1 - 1) r", resources, 2*leases)
			must(t, err)

			var (
				start = make(chan struct{})
				group sync.WaitGroup
				mu    sync.Mutex // guards sold
				sold  [resources]int
			)
			for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(2 * resources * leases) {
				resource, token := n%resources, fence.Token(1+n/resources/2)
				group.Go(func() {
					<-start
					err := sell(ctx, db, level, resource, token)
					for state(err) == serialization {
						err = sell(ctx, db, level, resource, token)
					}
					switch {
					case err == nil:
						mu.Lock()
						sold[resource]++
						mu.Unlock()
					case !errors.Is(err, fence.ErrStale) || token == leases:
						t.Errorf("%s at %d: %v", token, resource, err)
					}
				})
			}
			close(start)
			group.Wait()

			for resource := range resources {
				history := entered(t, db, resource)
				if at := goesBack(history); at >= 0 {
					t.Errorf("resource %d: number %d goes back: %v", resource, at, history)
				}
				if len(history) != sold[resource] {
					t.Errorf("resource %d: %d claims and %d sales", resource, len(history), sold[resource])
				}
				left := number(t, db, fmt.Sprintf("SELECT available FROM product_stock WHERE product_id = %d", resource))
				if missing := 2*leases - int(left); missing != sold[resource] {
					t.Errorf("resource %d: %d sold and %d missing", resource, sold[resource], missing)
				}
			}
		})
	}
}

// sell takes one away as a program would that reads first and writes what it
// computed.
func sell(ctx context.Context, db *sql.DB, level sql.IsolationLevel, product int, token fence.Token) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fences.Claim(ctx, tx, fmt.Sprint(product), token); err != nil {
		return err
	}
	var left int
	if err := tx.QueryRowContext(ctx, "SELECT available FROM product_stock WHERE product_id = $1", product).Scan(&left); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE product_stock SET available = $1 WHERE product_id = $2", left-1, product); err != nil {
		return err
	}
	return tx.Commit()
}

// entered are the fences that have entered a resource, in their order there.
func entered(t *testing.T, db *sql.DB, resource int) []fence.Token {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT last FROM entered WHERE resource = $1 ORDER BY n", fmt.Sprint(resource))
	must(t, err)
	defer rows.Close()
	var history []fence.Token
	for rows.Next() {
		var token fence.Token
		must(t, rows.Scan(&token))
		history = append(history, token)
	}
	must(t, rows.Err())
	return history
}
