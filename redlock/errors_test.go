package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/quorum"
)

// That a node could not be dialled in time is not the end of the caller's
// context, which is what errors.Is asks about.
func TestANodesTimeoutIsNotTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		for _, n := range mem[:2] {
			n.silent = true // every dial ends with its own deadline
		}
		l := newLocker(t, nodes, Config{})
		_, err := l.TryAcquire(context.Background(), "k")
		if !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("got %v", err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("the caller has no deadline, and errors.Is finds one: %v", err)
		}
	})
}

// A caller that asks for the context's error finds it, whatever cause the
// context was given.
func TestTheContextsErrorIsFoundBesidesItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		acquire(t, l, "k")
		shutdown := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(shutdown) })
		_, err := l.Acquire(ctx, "k")
		if !errors.Is(err, shutdown) || !errors.Is(err, context.Canceled) {
			t.Errorf("want the cause and context.Canceled, got %v", err)
		}
		_, err = l.TryAcquire(ctx, "other")
		if !errors.Is(err, shutdown) || !errors.Is(err, context.Canceled) {
			t.Errorf("want the cause and context.Canceled, got %v", err)
		}
	})
}

// A nested lock whose outer lease was lost did not lose anything itself.
func TestAcquireUnderALostLeaseIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{TTL: time.Second})
		outer := acquire(t, l, "outer")
		ctx := outer.Context()
		<-ctx.Done()
		_, err := l.TryAcquire(ctx, "inner")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the context it was given is done: got %v", err)
		}
	})
}

// Printing a lease, as everybody does once, shows no token.
func TestPrintingALeaseShowsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(3)
		l := newLocker(t, nodes, Config{})
		lease := acquire(t, l, "k")
		var b strings.Builder
		slog.New(slog.NewTextHandler(&b, nil)).Info("got it", "lease", lease)
		for _, printed := range []string{fmt.Sprint(lease), fmt.Sprintf("%+v", lease), fmt.Sprintf("%#v", lease), b.String()} {
			if strings.Contains(printed, string(lease.Token())) {
				t.Errorf("the token is in %.120s", printed)
			}
		}
	})
}

// Redis repeats the arguments of a command that it does not know, such as one
// that was renamed. A token among them does not reach an error.
func TestAnErrorOfANodeShowsNoToken(t *testing.T) {
	redisproc.Require(t)
	server, err := redisproc.Start(t.Context(), redisproc.Options{Args: []string{"--rename-command", "EVALSHA", ""}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	l, err := New([]Node{Redis(&redis.Options{Addr: server.Addr()})}, Config{DurableNodes: true, NodeTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		l.Close(ctx)
	})
	lease, err := l.TryAcquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	err = lease.Release(t.Context())
	if err == nil {
		t.Fatal("released without EVALSHA: the test shows nothing")
	}
	if strings.Contains(err.Error(), string(lease.Token())) {
		t.Errorf("the token is in the error: %v", err)
	}
}

// A cluster that has just restarted is one fact, not one per node.
func TestNodesInQuarantineAreNamedTogether(t *testing.T) {
	quarantined := func(node string, left, ago time.Duration) Vote {
		why := &QuarantineError{For: left, Why: fmt.Sprintf("restarted %v ago", ago), MaxTTL: 10 * time.Second}
		return Vote{Node: node, Vote: quorum.Unknown, Quarantined: left, Err: why}
	}
	q1, q2, q3 := quarantined("n1", 8500*time.Millisecond, 4*time.Second), quarantined("n2", 9*time.Second, 3*time.Second), quarantined("n3", time.Second, 11*time.Second)
	for _, c := range []struct {
		votes []Vote
		want  string
	}{
		{[]Vote{q1}, "0 of 1 granted, 1 needed; n1 unknown: quarantined for 9s more: restarted 4s ago, MaxTTL 10s"},
		{[]Vote{q1, q2, q3}, "0 of 3 granted, 2 needed; 3 nodes quarantined for 9s more: restarted 3s ago, MaxTTL 10s"},
		{
			[]Vote{{Node: "n1", Vote: quorum.Granted}, q2, {Node: "n3", Vote: quorum.Denied, Holder: "abcd"}},
			"1 of 3 granted, 2 needed; n2 unknown: quarantined for 9s more: restarted 3s ago, MaxTTL 10s; n3 denied: held by abcd",
		},
		{
			[]Vote{{Node: "n0", Vote: quorum.Unsent, Err: errors.New("not connected: refused")}, q1, q3, {Node: "n4", Vote: quorum.Granted}, q2},
			"1 of 5 granted, 3 needed; n1, n3, n2 quarantined for 9s more: restarted 3s ago, MaxTTL 10s; n0 unsent: not connected: refused",
		},
	} {
		err := &AttemptError{Op: "acquire", Key: "k", Votes: c.votes, causes: []error{ErrNoQuorum}}
		if got, want := err.Error(), `acquire "k": no quorum (`+c.want+")"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
