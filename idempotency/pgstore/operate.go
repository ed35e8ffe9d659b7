package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quorumlock/quorumlock/idempotency"
)

// page is how many records are read at a time.
const page = 200

// List implements [idempotency.Lister], in the order of keys. It reads page by
// page and holds no connection while the caller looks at a record.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		for after := ""; ; {
			names, records, err := s.page(ctx, after, f)
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(idempotency.Record{}, err)
				return
			}
			if len(names) < page {
				return
			}
			after = names[len(names)-1]
		}
	}
}

func (s *Store) page(ctx context.Context, after string, f idempotency.Filter) (names []string, records []idempotency.Record, err error) {
	statement, state := s.say.list, ""
	if f.State != 0 {
		state = f.State.String()
	}
	if f.Due || f.State == idempotency.StateUnknown || f.State == idempotency.StateInProgress {
		statement = s.say.listOpen
	}
	rows, err := s.db.QueryContext(ctx, statement, after, state, f.Due, page)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var r row
		if err := rows.Scan(append([]any{&name}, r.into()...)...); err != nil {
			return nil, nil, err
		}
		names = append(names, name)
		k, err := idempotency.ParseKey(name)
		if err != nil {
			continue // nobody can claim it, so nobody can settle it either
		}
		records = append(records, r.record(k))
	}
	return names, records, rows.Err()
}

// oldest is the first version that has what the statements use.
const oldest = 120000

// Check asks the server whether it is fit to keep records, and returns nil or what
// is wrong, all of it: it is too old, a standby, commits without waiting for its
// disk, its transactions are not READ COMMITTED by default, or the table is not
// there as [Store.Schema] makes it. It is for the start of a service.
func (s *Store) Check(ctx context.Context) error {
	var version int
	var standby bool
	var isolation, commit string
	err := s.db.QueryRowContext(ctx, `
		SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
			current_setting('default_transaction_isolation'), current_setting('synchronous_commit')`,
	).Scan(&version, &standby, &isolation, &commit)
	if err != nil {
		return err
	}
	var errs []error
	if version < oldest {
		errs = append(errs, fmt.Errorf("its version is %d: want %d or later", version, oldest))
	}
	if standby {
		errs = append(errs, errors.New("it is a standby: want the primary"))
	}
	if isolation != "read committed" {
		errs = append(errs, fmt.Errorf("default_transaction_isolation is %q: claims at once would fail, want read committed", isolation))
	}
	if commit == "off" {
		errs = append(errs, errors.New("synchronous_commit is off: a crash forgets records"))
	}
	if _, err := s.db.ExecContext(ctx, s.say.list, "", "", false, 0); err != nil {
		errs = append(errs, fmt.Errorf("the table: %w", err))
	}
	return errors.Join(errs...)
}
