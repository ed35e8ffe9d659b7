package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func TestNamesAreThoseOfTheDocumentation(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"CREATED": idempotency.Created, "IN_PROGRESS": idempotency.InProgress, "REPLAY": idempotency.Replay,
		"FINGERPRINT_MISMATCH": idempotency.Mismatch, "TAKEOVER": idempotency.Takeover, "UNKNOWN": idempotency.Undecided,
		"Outcome(9)": idempotency.Outcome(9), "State(0)": idempotency.State(0),
		"happened": idempotency.Happened(idempotency.Result{}), "did_not_happen": idempotency.DidNotHappen(),
		"cannot_tell": idempotency.Verdict{},
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, got := range map[string]idempotency.State{
		"IN_PROGRESS": idempotency.StateInProgress, "SUCCESS": idempotency.StateSuccess, "UNKNOWN": idempotency.StateUnknown,
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is logged of an error or a run says when to come back, and shows no key.
func TestErrorsAndRunsShowNoKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := guard(t, memory(), idempotency.Config{})
		var seen []string
		g.Do(t.Context(), asked, func(ctx context.Context, ex *idempotency.Execution) (idempotency.Result, error) {
			seen = append(seen, fmt.Sprint(ex))
			time.Sleep(2 * time.Second)
			_, _, err := g.Do(ctx, asked, nil)
			seen = append(seen, err.Error())
			return idempotency.Result{}, errors.New("500")
		})
		_, _, err := g.Do(t.Context(), asked, nil)
		seen = append(seen, err.Error())
		want := []string{
			"orders " + order.Digest() + " attempt 1",
			"in progress: attempt 1, for 2s; try again in 2s",
			"outcome of an earlier attempt unknown: after attempt 1: the run failed: 500; try again in 30s",
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("%q\nwant %q", seen, want)
		}
		if all := strings.Join(seen, " "); strings.Contains(all, order.Value) || strings.Contains(all, order.Principal) {
			t.Errorf("a key is in %q", seen)
		}
	})
}
