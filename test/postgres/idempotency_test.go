package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
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
func records(t testing.TB, statements string, changes ...func(*pgx.ConnConfig)) (*sql.DB, *pgstore.Store) {
	t.Helper()
	s, err := pgstore.New(nil, pgstore.Config{})
	must(t, err)
	db := database(t, s.Schema()+";"+statements, changes...)
	db.SetMaxOpenConns(20) // the server takes a hundred, from all tests
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

// answering is a run that counts itself and answers text.
func answering(runs *atomic.Int32, text string) idempotency.Func {
	return func(context.Context, *idempotency.Execution) (idempotency.Result, error) {
		runs.Add(1)
		return idempotency.Result{Response: []byte(text)}, nil
	}
}

func guard(t testing.TB, s idempotency.Store, c idempotency.Config) *idempotency.Guard {
	t.Helper()
	g, err := idempotency.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// field-reports: 31, 33, 35, 37, 85, 120
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

// The answer to each statement of a request is lost in turn: the request finds
// its own work, and runs once.
//
// field-reports: 70
func TestALostAnswerOfTheDatabaseIsAskedForAgain(t *testing.T) {
	var lose atomic.Bool
	_, s := records(t, "", losing(&lose))
	for i, when := range []string{"claim", "complete", "unknown", "abandon"} {
		t.Run(when, func(t *testing.T) {
			r := asked
			r.Key.Value = when
			g := guard(t, s, idempotency.Config{})
			var warm, runs atomic.Int32
			_, _, err := g.Do(t.Context(), idempotency.Request{Key: idempotency.Key{Operation: "warm", Principal: "up", Value: when}, Fingerprint: printOfX}, answering(&warm, ""))
			must(t, err)

			lose.Store(when == "claim")
			failure := []error{nil, nil, errors.New("500"), idempotency.NoEffect(errors.New("401"))}[i]
			_, info, err := g.Do(t.Context(), r, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
				runs.Add(1)
				if lose.Load() {
					t.Error("no answer was lost so far")
				}
				lose.Store(when != "claim")
				return idempotency.Result{Response: []byte("o1001")}, failure
			})
			is(t, when, err, failure)
			if lose.Load() || !info.Stored || info.Outcome != idempotency.Created || runs.Load() != 1 {
				t.Errorf("%s: %+v, %d runs; still to be lost: %v", when, info, runs.Load(), lose.Load())
			}
			want := []idempotency.State{idempotency.StateSuccess, idempotency.StateSuccess, idempotency.StateUnknown, 0}[i]
			if got, _ := s.Get(t.Context(), r.Key); got.State != want {
				t.Errorf("%s: it is %v, want %v", when, got.State, want)
			}
		})
	}
}

func TestExpiredRecordsAreDeletedInSmallSteps(t *testing.T) {
	db, s := records(t, "")
	_, err := db.ExecContext(t.Context(), `
		INSERT INTO idempotency_record
			(key, fingerprint, state, owner, lease_until, attempt, started_at, holder, reason, expires_at)
		SELECT 'orders:u:' || i, 'v1:x', 'IN_PROGRESS', 'a', now(), 1, now(), '', '', now() + (i - 450) * interval '1 hour'
		FROM generate_series(1, 500) AS i`) // 450 of them have expired
	must(t, err)
	step := func(limit, want int) {
		t.Helper()
		n, err := s.DeleteExpired(t.Context(), limit)
		if n != want || err != nil {
			t.Errorf("%d deleted, %v, want %d", n, err, want)
		}
	}
	step(100, 100)
	// One is in another transaction's hands, and nobody waits for that.
	other := begin(t, db, sql.LevelReadCommitted)
	_, err = other.ExecContext(t.Context(), "SELECT FROM idempotency_record WHERE key = 'orders:u:200' FOR UPDATE")
	must(t, err)
	step(1000, 349)
	must(t, other.Rollback())
	step(1000, 1)
	step(1000, 0)
	if left := number(t, db, "SELECT count(*) FROM idempotency_record"); left != 50 {
		t.Errorf("%d are left, want 50", left)
	}
}

func TestAListHasMoreThanAPage(t *testing.T) {
	_, s := records(t, "")
	want := map[string]bool{}
	for i := range 437 {
		r := idempotency.ClaimRequest{Key: order, Fingerprint: printOfX, Owner: "a", Lease: time.Minute, Retention: time.Hour}
		r.Key.Value = fmt.Sprint(i)
		_, err := s.Claim(t.Context(), r)
		must(t, err)
		want[r.Key.Value] = true
	}
	for _, f := range []idempotency.Filter{{}, {State: idempotency.StateInProgress}} {
		got := map[string]bool{}
		for r, err := range s.List(t.Context(), f) {
			must(t, err)
			if got[r.Key.Value] {
				t.Errorf("%s is there twice", r.Key.Value)
			}
			got[r.Key.Value] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%+v: %d records, want %d", f, len(got), len(want))
		}
	}
}

func TestTheTableHasTheNameItIsGiven(t *testing.T) {
	for name, ok := range map[string]bool{
		"idempotency_record": true, "Records": true, "side.Intents": true,
		"a-b": false, `a"b`: false, "": true, "1a": false, "a.b.c": false, ".a": false, "a.": false, "é": false,
		strings.Repeat("x", 50): true, strings.Repeat("x", 51): false,
	} {
		s, err := pgstore.New(nil, pgstore.Config{Table: name})
		if (err == nil) != ok || err != nil && !errors.Is(err, idempotency.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil {
			continue
		}
		db := database(t, "DROP SCHEMA IF EXISTS side CASCADE; CREATE SCHEMA side;"+s.Schema()+";"+s.Schema()) // making it again changes nothing
		s, err = pgstore.New(db, pgstore.Config{Table: name})
		must(t, err)
		must(t, s.Check(t.Context()))
		var runs atomic.Int32
		for range 2 {
			_, _, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, answering(&runs, "o1001"))
			must(t, err)
		}
		if runs.Load() != 1 {
			t.Errorf("%q: %d runs", name, runs.Load())
		}
	}
}

func TestCheckSaysWhatIsWrongWithADatabase(t *testing.T) {
	s, err := pgstore.New(nil, pgstore.Config{})
	must(t, err)
	for name, c := range map[string]struct {
		schema, setting, value, want string
	}{
		"nothing":         {s.Schema(), "application_name", "test", ""},
		"no table":        {"SELECT 1", "application_name", "test", "idempotency_record"},
		"another table":   {"CREATE TABLE idempotency_record (key text)", "application_name", "test", "fingerprint"},
		"isolation":       {s.Schema(), "default_transaction_isolation", "repeatable read", "default_transaction_isolation"},
		"commits at once": {s.Schema(), "synchronous_commit", "off", "synchronous_commit"},
	} {
		db := database(t, c.schema, func(p *pgx.ConnConfig) { p.RuntimeParams[c.setting] = c.value })
		s, err := pgstore.New(db, pgstore.Config{})
		must(t, err)
		err = s.Check(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
