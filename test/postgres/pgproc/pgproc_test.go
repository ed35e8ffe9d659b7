package pgproc

import (
	"context"
	"errors"
	"os"
	"testing"
)

func TestAStartThatIsGivenUpLeavesNothing(t *testing.T) {
	Require(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Start(ctx); !errors.Is(err, context.Canceled) || s != nil {
		t.Errorf("%v, %v", s, err)
	}
	if left, err := os.ReadDir(os.TempDir()); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestVersionsAreNumbers(t *testing.T) {
	for path, want := range map[string]int{
		"/usr/lib/postgresql/15/bin/initdb":  15,
		"/usr/lib/postgresql/9.6/bin/initdb": 0, // older than all that matter
	} {
		if got := version(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}
