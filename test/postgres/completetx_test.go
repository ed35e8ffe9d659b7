package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/pgstore"
)

const (
	orders   = "CREATE TABLE orders (id text)" // no constraint: the record alone keeps them apart
	howMany  = "SELECT count(*) FROM orders"
	complete = idempotency.StateSuccess
	running  = idempotency.StateInProgress
)

var o1001 = idempotency.Result{Response: []byte("o1001")}

// ordering is a run that orders, and completes its record in the same transaction;
// before is what it does last of all before that.
func ordering(t *testing.T, db *sql.DB, s *pgstore.Store, level sql.IsolationLevel, before func(tx *sql.Tx)) idempotency.Func {
	return func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		ctx = context.WithoutCancel(ctx) // as who does not notice
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		must(t, err)
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('o1001')")
		must(t, err)
		if before != nil {
			before(tx)
		}
		if err := s.CompleteTx(ctx, tx, ex, o1001); err != nil {
			return idempotency.Result{}, err
		}
		return o1001, tx.Commit()
	}
}

func inState(t *testing.T, s *pgstore.Store, want idempotency.State) {
	t.Helper()
	r, err := s.Get(t.Context(), order)
	if err != nil || r.State != want {
		t.Errorf("the record is %v, %v, want %v", r.State, err, want)
	}
}

func TestTheEffectAndItsRecordAreCommittedTogether(t *testing.T) {
	db, s := records(t, orders)
	g := guard(t, s, idempotency.Config{})
	_, info, err := g.Do(t.Context(), asked, ordering(t, db, s, sql.LevelReadCommitted, func(*sql.Tx) {
		inState(t, s, running)
	}))
	if err != nil || !info.Stored {
		t.Errorf("%+v, %v", info, err)
	}
	inState(t, s, complete)
	var runs atomic.Int32
	if r, info, err := g.Do(t.Context(), asked, answering(&runs, "")); err != nil || !info.Replayed || string(r.Response) != "o1001" || runs.Load() != 0 {
		t.Errorf("retry: %q, %+v, %v, %d runs", r.Response, info, err, runs.Load())
	}

	// Neither is there if the transaction is rolled back.
	again := asked
	again.Key.Value = "req-002"
	_, info, err = g.Do(t.Context(), again, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('o1002')")
		must(t, err)
		must(t, s.CompleteTx(ctx, tx, ex, o1001))
		must(t, tx.Rollback())
		return idempotency.Result{}, idempotency.NoEffect(errors.New("changed its mind"))
	})
	if !info.Stored {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = s.Get(t.Context(), again.Key)
	is(t, "after the rollback", err, idempotency.ErrNotFound)
	if n := number(t, db, howMany); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

// The first owner is stopped before its commit for longer than its lease. Who
// takes over finds no order and runs; the late one is then rolled back, order and
// all, though nothing else keeps it from being there twice.
func TestALateOwnersEffectIsRolledBack(t *testing.T) {
	for _, level := range every {
		t.Run(level.String(), func(t *testing.T) {
			db, s := records(t, orders)
			next := guard(t, s, idempotency.Config{Reconciler: func(ctx context.Context, _ idempotency.Record) (idempotency.Verdict, error) {
				if number(t, db, howMany) > 0 {
					return idempotency.Happened(o1001), nil
				}
				return idempotency.DidNotHappen(), nil
			}})
			_, info, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, ordering(t, db, s, level, func(*sql.Tx) {
				must(t, elapse(db)(t.Context(), order, time.Minute))
				_, info, err := next.Do(t.Context(), asked, ordering(t, db, s, level, nil))
				if err != nil || info.Outcome != idempotency.Takeover || !info.Ran || !info.Stored {
					t.Errorf("the next: %+v, %v", info, err)
				}
			}))
			if level == every[0] {
				is(t, "the late owner", err, idempotency.ErrLeaseLost)
			} else if state(err) != serialization {
				t.Errorf("the late owner: %v, want SQLSTATE %s", err, serialization)
			}
			if info.Stored {
				t.Errorf("the late owner: %+v", info)
			}
			if n := number(t, db, howMany); n != 1 {
				t.Errorf("%d orders, want 1", n)
			}
			inState(t, s, complete)
		})
	}
}

// A retry that comes while the transaction is about to commit waits for it, and
// gets what is true then, even if the lease has ended meanwhile.
func TestAClaimWaitsForACompletionThatIsNotCommitted(t *testing.T) {
	for name, c := range map[string]struct {
		commit bool
		want   idempotency.Outcome
	}{"commit": {true, idempotency.Replay}, "rollback": {false, idempotency.Takeover}} {
		t.Run(name, func(t *testing.T) {
			db, s := records(t, orders)
			_, _, err := guard(t, s, idempotency.Config{}).Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
				must(t, elapse(db)(ctx, order, time.Minute))
				tx := begin(t, db, sql.LevelReadCommitted)
				must(t, s.CompleteTx(ctx, tx.Tx, ex, o1001))
				answer := make(chan idempotency.Claim)
				go func() {
					got, err := s.Claim(ctx, idempotency.ClaimRequest{
						Key: order, Fingerprint: printOfX, Owner: "next", Lease: time.Minute, Retention: time.Hour,
					})
					if err != nil {
						t.Error(err)
					}
					answer <- got
				}()
				waits(t, db, tx.pid)
				if c.commit {
					must(t, tx.Commit())
				} else {
					must(t, tx.Rollback())
				}
				if got := <-answer; got.Outcome != c.want {
					t.Errorf("%v, want %v", got.Outcome, c.want)
				}
				return o1001, nil
			})
			must(t, err)
		})
	}
}

// waits returns when some session waits for that of pid.
func waits(t *testing.T, db *sql.DB, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for waiting := false; !waiting; <-tick.C {
		must(t, db.QueryRowContext(ctx,
			"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", pid).Scan(&waiting))
	}
}

// The commit went through and nobody was told. The run says that it does not
// know; the retry finds the answer that was committed.
func TestALostCommitIsFoundByTheRetry(t *testing.T) {
	var lose atomic.Bool
	db, s := records(t, orders, losing(&lose))
	g := guard(t, s, idempotency.Config{})
	_, info, err := g.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('o1001')")
		must(t, err)
		must(t, s.CompleteTx(ctx, tx, ex, o1001))
		lose.Store(true)
		return o1001, tx.Commit()
	})
	if err == nil || lose.Load() {
		t.Fatalf("the commit's answer was not lost: %+v, %v", info, err)
	}
	inState(t, s, complete)
	var runs atomic.Int32
	r, info, err := g.Do(t.Context(), asked, answering(&runs, ""))
	if err != nil || string(r.Response) != "o1001" || !info.Replayed || runs.Load() != 0 {
		t.Errorf("retry: %q, %+v, %v, %d runs", r.Response, info, err, runs.Load())
	}
	if n := number(t, db, howMany); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

// CompleteTx refuses an owner who has been replaced, one who has let go, and one
// who has done it already, as after a commit whose answer was lost.
func TestCompleteTxIsOnlyForARecordInProgressUnderItsOwner(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, db *sql.DB, s *pgstore.Store, ex *idempotency.Execution){
		"another is at it": func(t *testing.T, db *sql.DB, s *pgstore.Store, _ *idempotency.Execution) {
			must(t, elapse(db)(t.Context(), order, time.Minute))
			got, err := s.Claim(t.Context(), idempotency.ClaimRequest{
				Key: order, Fingerprint: printOfX, Owner: "next", Lease: time.Minute, Retention: time.Hour,
			})
			if err != nil || got.Outcome != idempotency.Takeover {
				t.Fatalf("%v, %v", got.Outcome, err)
			}
		},
		"it has let go": func(t *testing.T, _ *sql.DB, s *pgstore.Store, ex *idempotency.Execution) {
			must(t, s.MarkUnknown(t.Context(), idempotency.UnknownRequest{
				Key: order, Owner: ex.Completion(o1001).Owner, Pause: time.Minute, Retention: time.Hour,
			}))
		},
		"it is done": func(t *testing.T, db *sql.DB, s *pgstore.Store, ex *idempotency.Execution) {
			tx := begin(t, db, sql.LevelReadCommitted)
			must(t, s.CompleteTx(t.Context(), tx.Tx, ex, o1001))
			must(t, tx.Commit())
		},
		"it has expired": func(t *testing.T, db *sql.DB, _ *pgstore.Store, _ *idempotency.Execution) {
			must(t, elapse(db)(t.Context(), order, 25*time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, s := records(t, "")
			guard(t, s, idempotency.Config{}).Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
				meanwhile(t, db, s, ex)
				tx := begin(t, db, sql.LevelReadCommitted)
				is(t, name, s.CompleteTx(ctx, tx.Tx, ex, idempotency.Result{Response: []byte("late")}), idempotency.ErrLeaseLost)
				return idempotency.Result{}, errors.New("refused")
			})
		})
	}
}
