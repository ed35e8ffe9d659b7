package memstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/storetest"
)

// subject is tested, and keeps its records in s.
func subject(tested idempotency.Store, s *Store) storetest.Subject {
	return storetest.Subject{
		Store: tested,
		Elapse: func(_ context.Context, k idempotency.Key, d time.Duration) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if rec := s.records[k]; rec != nil {
				rec.StartedAt, rec.ExpiresAt = rec.StartedAt.Add(-d), rec.ExpiresAt.Add(-d)
				if !rec.LeaseUntil.IsZero() {
					rec.LeaseUntil = rec.LeaseUntil.Add(-d)
				}
			}
			return nil
		},
		Forget: func(_ context.Context, k idempotency.Key) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.records, k)
			return nil
		},
	}
}

// field-reports: 31, 33, 35, 37, 85, 120
func TestStore(t *testing.T) {
	s := New(nil)
	storetest.Run(t, subject(s, s))
}

func request(value string, lease, retention time.Duration) idempotency.ClaimRequest {
	return idempotency.ClaimRequest{
		Key:         idempotency.Key{Operation: "orders", Principal: "u1001", Value: value},
		Fingerprint: fingerprint.Print("v1:x"), Owner: idempotency.NewToken(), Lease: lease, Retention: retention,
	}
}

// field-reports: 93
func TestExpiredRecordsAreForgottenByWhoComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(clock.NewSkewed(1))
		const many = 20_000
		claim := func(round, i int) {
			if _, err := s.Claim(t.Context(), request(fmt.Sprint(round, " ", i), time.Second, time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range many {
			claim(1, i)
		}
		if len(s.records) != many {
			t.Fatalf("%d records, want %d", len(s.records), many)
		}
		time.Sleep(time.Hour)
		for i := range many {
			claim(2, i)
		}
		if n := len(s.records); n > many*11/10 {
			t.Errorf("%d records, want hardly more than the %d that have not expired", n, many)
		}
	})
}

func TestStepsOfTheWallClockEndNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewSkewed(1)
		s := New(c)
		first := request("req-001", time.Minute, time.Hour)
		for _, step := range []time.Duration{0, 3 * time.Hour, -9 * time.Hour} {
			c.Step(step)
			r := first
			if step != 0 {
				r.Owner = idempotency.NewToken()
			}
			got, err := s.Claim(t.Context(), r)
			if err != nil || (got.Outcome == idempotency.Created) != (step == 0) {
				t.Errorf("after a step of %v: %v, %v", step, got.Outcome, err)
			}
		}
		time.Sleep(time.Minute)
		if got, err := s.Claim(t.Context(), request("req-001", time.Minute, time.Hour)); err != nil || got.Outcome != idempotency.Takeover {
			t.Errorf("after a minute: %v, %v", got.Outcome, err)
		}
	})
}
