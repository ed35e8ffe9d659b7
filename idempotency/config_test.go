package idempotency_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		config idempotency.Config
		fields []string
	}{
		"the zero Config":  {idempotency.Config{}, nil},
		"a short lease":    {idempotency.Config{Lease: 100 * time.Millisecond}, nil},
		"too short":        {idempotency.Config{Lease: time.Millisecond}, []string{"Lease"}},
		"no lease at all":  {idempotency.Config{Lease: -1}, []string{"Lease"}},
		"soon forgotten":   {idempotency.Config{Retention: 40 * time.Second}, []string{"Retention"}},
		"long runs":        {idempotency.Config{ExecTimeout: 25 * time.Hour}, []string{"Retention"}},
		"backwards":        {idempotency.Config{ExecTimeout: -1, UnknownRetry: -1, MaxResponse: -1}, []string{"ExecTimeout", "UnknownRetry", "MaxResponse"}},
		"a long lease":     {idempotency.Config{Lease: math.MaxInt64, StoreTimeout: time.Second}, []string{"Retention"}},
		"for ever":         {idempotency.Config{Retention: math.MaxInt64}, nil},
		"a long pause":     {idempotency.Config{UnknownRetry: 24 * time.Hour}, []string{"UnknownRetry"}},
		"a patient store":  {idempotency.Config{StoreTimeout: 15 * time.Second}, []string{"StoreTimeout"}},
		"an instant store": {idempotency.Config{StoreTimeout: -time.Second}, []string{"StoreTimeout"}},
	} {
		_, err := idempotency.New(memory(), c.config)
		if (err != nil) != (len(c.fields) > 0) || err != nil && !errors.Is(err, idempotency.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		for _, field := range c.fields {
			if err != nil && !strings.Contains(err.Error(), "Config."+field+" is") {
				t.Errorf("%s: %v, want %s named", name, err, field)
			}
		}
	}
	if _, err := idempotency.New(nil, idempotency.Config{}); !errors.Is(err, idempotency.ErrInvalid) {
		t.Errorf("without a store: %v", err)
	}
}

// field-reports: 37
func TestRequestsWithoutAPrincipalOrAFingerprintAreRefused(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{})
	for name, spoil := range map[string]func(*idempotency.Request){
		"Principal":   func(r *idempotency.Request) { r.Key.Principal = "" },
		"Operation":   func(r *idempotency.Request) { r.Key.Operation = "" },
		"Value":       func(r *idempotency.Request) { r.Key.Value = strings.Repeat("x", 256) },
		"Fingerprint": func(r *idempotency.Request) { r.Fingerprint = "" },
		"no text":     func(r *idempotency.Request) { r.Fingerprint = "v1:\xff" },
		"without NUL": func(r *idempotency.Request) { r.Alternates = []fingerprint.Print{"v1:\x00"} },
	} {
		r := asked
		spoil(&r)
		var c counter
		if _, _, err := g.Do(t.Context(), r, c.answering("", 0)); !errors.Is(err, idempotency.ErrInvalid) || !strings.Contains(err.Error(), name) || c.runs() != 0 {
			t.Errorf("%s: %v, %d runs", name, err, c.runs())
		}
	}
}

// Each principal has its own, whatever the others send.
//
// field-reports: 37
func TestPrincipalsDoNotMeet(t *testing.T) {
	g := guard(t, memory(), idempotency.Config{})
	for _, k := range []idempotency.Key{
		{Operation: "orders", Principal: "u1", Value: "req-001"},
		{Operation: "orders", Principal: "u2", Value: "req-001"},
		{Operation: "orders", Principal: "a:b", Value: "c"},
		{Operation: "orders", Principal: "a", Value: "b:c"},
	} {
		var c counter
		own := "of " + k.Principal + " " + k.Value
		r := idempotency.Request{Key: k, Fingerprint: "v1:x"}
		for range 2 {
			got, _, err := g.Do(t.Context(), r, c.answering(own, 0))
			if err != nil || string(got.Response) != own || c.runs() != 1 {
				t.Errorf("%+v: %q, %v, %d runs", k, got.Response, err, c.runs())
			}
		}
	}
}
