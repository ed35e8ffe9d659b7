// Package redisstore keeps idempotency records in Redis 5 or later, or Valkey:
// one hash per record, one script per call, one key per script, so that it works
// on a cluster too. Leases go by the server's clock.
//
// Redis may lose what it has answered: keys are evicted unless maxmemory-policy is
// noeviction, a restart forgets what was not yet on disk, and a fail-over what had
// not reached the replica. The next retry of a request whose record was lost runs
// again. Where that must not be, a constraint of the database that holds the effect
// has to refuse it; see [Store.Check] for what can be found out about a server.
package redisstore

import (
	"context"
	_ "embed" // for the scripts
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

var (
	//go:embed claim.lua
	claimSource string
	//go:embed renew.lua
	renewSource string
	//go:embed complete.lua
	completeSource string
	//go:embed unknown.lua
	unknownSource string
	//go:embed abandon.lua
	abandonSource string
	//go:embed resolve.lua
	resolveSource string
	//go:embed get.lua
	getSource string

	claimScript    = redis.NewScript(claimSource)
	renewScript    = redis.NewScript(renewSource)
	completeScript = redis.NewScript(completeSource)
	unknownScript  = redis.NewScript(unknownSource)
	abandonScript  = redis.NewScript(abandonSource)
	resolveScript  = redis.NewScript(resolveSource)
	getScript      = redis.NewScript(getSource)
)

// Config says how records are kept. The zero value is valid.
type Config struct {
	// KeyPrefix is put before every key, a colon after it. "" means "idem", as in
	// idem:orders:u1001:req-001.
	KeyPrefix string
}

// Store is a store in Redis. It is an [idempotency.Store], [idempotency.Lister]
// and [idempotency.Resolver]; its methods may be called concurrently.
type Store struct {
	client redis.UniversalClient
	prefix string
}

// New returns a Store that uses client, which stays the caller's. The client's
// ContextTimeoutEnabled has to be set, or calls outlast their contexts.
func New(client redis.UniversalClient, c Config) *Store {
	if c.KeyPrefix == "" {
		c.KeyPrefix = "idem"
	}
	return &Store{client, c.KeyPrefix + ":"}
}

func (s *Store) run(ctx context.Context, script *redis.Script, k idempotency.Key, args ...any) *redis.Cmd {
	// An answer that is lost is asked for again by the client itself, which is
	// harmless: every script may run twice.
	return script.Run(ctx, s.client, []string{s.prefix + k.String()}, args...)
}

// ask runs a script that answers with a number, of which 0 means that the record
// is not the caller's.
func (s *Store) ask(ctx context.Context, script *redis.Script, k idempotency.Key, args ...any) (int, error) {
	code, err := s.run(ctx, script, k, args...).Int()
	if err == nil && code == 0 {
		err = idempotency.ErrLeaseLost
	}
	return code, err
}

// Claim implements [idempotency.Store].
func (s *Store) Claim(ctx context.Context, r idempotency.ClaimRequest) (idempotency.Claim, error) {
	if err := r.Validate(); err != nil {
		return idempotency.Claim{}, err
	}
	args := []any{string(r.Owner), millis(r.Lease), millis(r.Retention), r.Holder, string(r.Fingerprint)}
	for _, print := range r.Alternates {
		args = append(args, string(print))
	}
	answer, err := s.run(ctx, claimScript, r.Key, args...).Slice()
	if err != nil {
		return idempotency.Claim{}, err
	}
	return readClaim(r.Key, answer)
}

// Renew implements [idempotency.Store].
func (s *Store) Renew(ctx context.Context, r idempotency.RenewRequest) error {
	_, err := s.ask(ctx, renewScript, r.Key, string(r.Owner), millis(r.Lease), millis(r.Retention))
	return err
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, r idempotency.CompleteRequest) (idempotency.Completion, error) {
	began := ""
	if !r.StartedAt.IsZero() {
		began = fmt.Sprint(r.StartedAt.UnixMilli())
	}
	code, err := s.ask(ctx, completeScript, r.Key,
		string(r.Owner), millis(r.Retention), r.Response, string(r.Fingerprint), r.Attempt, began)
	return idempotency.Completion(code), err
}

// MarkUnknown implements [idempotency.Store].
func (s *Store) MarkUnknown(ctx context.Context, r idempotency.UnknownRequest) error {
	_, err := s.ask(ctx, unknownScript, r.Key, string(r.Owner), r.Reason, millis(r.Pause), millis(r.Retention))
	return err
}

// Abandon implements [idempotency.Store].
func (s *Store) Abandon(ctx context.Context, r idempotency.AbandonRequest) error {
	_, err := s.ask(ctx, abandonScript, r.Key, string(r.Owner), flag(r.Reconciled))
	return err
}

// Resolve implements [idempotency.Resolver].
func (s *Store) Resolve(ctx context.Context, r idempotency.Resolution) error {
	code, err := s.run(ctx, resolveScript, r.Key, r.Attempt, flag(r.Happened), r.Response, millis(r.Retention)).Int()
	if err == nil && code == 0 {
		return idempotency.ErrNotUnknown
	}
	return err
}

// Get implements [idempotency.Store].
func (s *Store) Get(ctx context.Context, k idempotency.Key) (idempotency.Record, error) {
	answer, err := s.run(ctx, getScript, k).Slice()
	if err != nil {
		return idempotency.Record{}, err
	}
	if len(answer) == 0 {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	record, _, err := readRecord(k, answer)
	return record, err
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// millis is d as scripts take it, rounded up: a lease is never shorter than what
// was asked for. Only the longest there is stays below, so that what comes back is
// a Duration too.
func millis(d time.Duration) int64 {
	d = min(d, math.MaxInt64-time.Millisecond)
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func readClaim(k idempotency.Key, answer []any) (idempotency.Claim, error) {
	if len(answer) < 2 {
		return idempotency.Claim{}, unreadable(answer)
	}
	code, ok := answer[0].(int64)
	outcome := idempotency.Outcome(code)
	switch {
	case !ok || code < 0 || outcome > idempotency.Undecided:
		return idempotency.Claim{}, unreadable(answer)
	case outcome == idempotency.Mismatch:
		return idempotency.Claim{Outcome: outcome}, nil
	}
	record, now, err := readRecord(k, answer[2:])
	return idempotency.Claim{
		Outcome: outcome, Record: record, Age: max(0, now.Sub(record.StartedAt)), Left: max(0, record.LeaseUntil.Sub(now)),
	}, err
}

var states = map[string]idempotency.State{
	"P": idempotency.StateInProgress, "S": idempotency.StateSuccess, "U": idempotency.StateUnknown,
}

// readRecord reads what claim.lua and get.lua say of a record, and the server's
// time.
func readRecord(k idempotency.Key, answer []any) (idempotency.Record, time.Time, error) {
	if len(answer) != 10 {
		return idempotency.Record{}, time.Time{}, unreadable(answer)
	}
	texts, numbers := map[int]string{}, map[int]int64{}
	for i, a := range answer {
		switch a := a.(type) {
		case string:
			texts[i] = a
		case int64:
			numbers[i] = a
		}
	}
	state := states[texts[0]]
	if state == 0 || len(texts) != 5 || len(numbers) != 5 {
		return idempotency.Record{}, time.Time{}, unreadable(answer)
	}
	now := time.UnixMilli(numbers[7])
	r := idempotency.Record{
		Key: k, State: state, Fingerprint: fingerprint.Print(texts[1]), Attempt: numbers[2],
		Holder: texts[3], Reason: texts[4], StartedAt: time.UnixMilli(numbers[5]),
		ExpiresAt: now.Add(time.Duration(numbers[8]) * time.Millisecond),
	}
	if state == idempotency.StateSuccess {
		r.Response = []byte(texts[9])
	} else {
		r.LeaseUntil = time.UnixMilli(numbers[6])
	}
	return r, now, nil
}

func unreadable(answer []any) error {
	return fmt.Errorf("the script's answer has %d parts and makes no sense", len(answer))
}

// keyOf is the record's key that is kept under name.
func (s *Store) keyOf(name string) (idempotency.Key, bool) {
	text, ours := strings.CutPrefix(name, s.prefix)
	k, err := idempotency.ParseKey(text)
	return k, ours && err == nil
}
