package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

const sides = 8 // goroutines for each processor; the pool has fewer connections

// What the guard costs: claim, run nothing, complete.
func BenchmarkDoOnPostgreSQL(b *testing.B) {
	_, s := records(b, "")
	g := guard(b, s, idempotency.Config{})
	var n atomic.Int64
	var runs atomic.Int32
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := asked
			r.Key.Value = fmt.Sprint(n.Add(1))
			if _, _, err := g.Do(b.Context(), r, answering(&runs, "o1001")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a duplicate costs.
func BenchmarkReplayOnPostgreSQL(b *testing.B) {
	_, s := records(b, "")
	g := guard(b, s, idempotency.Config{})
	var runs atomic.Int32
	if _, _, err := g.Do(b.Context(), asked, answering(&runs, "o1001")); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, _, err := g.Do(b.Context(), asked, answering(&runs, "o1001")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The least that could be done instead: INSERT and, in the end, UPDATE, into a
// table with nothing but a key and a value.
func BenchmarkBareInsertAndUpdate(b *testing.B) {
	db, _ := records(b, "CREATE TABLE bare (key text PRIMARY KEY, response bytea)")
	var n atomic.Int64
	b.SetParallelism(sides)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			key := fmt.Sprint(n.Add(1))
			if _, err := db.ExecContext(b.Context(), "INSERT INTO bare (key) VALUES ($1) ON CONFLICT DO NOTHING", key); err != nil {
				b.Fatal(err)
			}
			if _, err := db.ExecContext(b.Context(), "UPDATE bare SET response = $2 WHERE key = $1", key, []byte("o1001")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
