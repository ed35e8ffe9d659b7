package httpguard

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/redlock"
)

// quorumInABubble is the quorum lock on three servers in memory, for a bubble. It
// is closed by the returned function.
func quorumInABubble(t *testing.T, trace *redlock.Trace) (*redlock.Locker, func()) {
	t.Helper()
	release, extend := source(t, "release"), source(t, "extend")
	var nodes []redlock.Node
	for i := range 3 {
		s := respfake.New(respfake.Options{})
		t.Cleanup(s.Close)
		s.SetInfo("uptime_in_seconds", "1000000") // long enough not to be quarantined
		s.Script(release, func(tx *respfake.Tx, keys, argv []string) any {
			return ours(tx, keys, argv, func(i int) { tx.Del(keys[i]) })
		})
		s.Script(extend, func(tx *respfake.Tx, keys, argv []string) any {
			return ours(tx, keys, argv, func(i int) {
				ms, err := strconv.ParseInt(argv[len(keys)+i], 10, 64)
				if err != nil {
					t.Error(err)
				}
				tx.PExpire(keys[i], ms)
			})
		})
		nodes = append(nodes, redlock.Redis(&redis.Options{Addr: fmt.Sprint("127.0.0.1:", 7001+i), Dialer: s.Dialer()}))
	}
	locker, err := redlock.New(nodes, redlock.Config{Clock: clock.NewSkewed(1), Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	return locker, func() {
		if err := locker.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// source is a script of package redlock.
func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../redlock/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ours does something to each key that holds its token, and answers as the scripts do.
func ours(tx *respfake.Tx, keys, tokens []string, do func(i int)) any {
	all := true
	var answer []any
	for i, held := range tx.MGet(keys...) {
		switch held {
		case tokens[i]:
			do(i)
			answer = append(answer, 1)
			continue
		case nil:
			answer = append(answer, 0)
		default:
			answer = append(answer, held)
		}
		all = false
	}
	if all {
		return len(keys)
	}
	return answer
}

// A window ends by a release, and no lease is reported as lost.
func TestWindowOnTheQuorumLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost, released atomic.Int64
		locker, closeLocker := quorumInABubble(t, &redlock.Trace{
			Lost: func(redlock.LostEvent) { lost.Add(1) },
			Released: func(e redlock.ReleaseEvent) {
				if e.Err != nil {
					t.Errorf("released with %v", e.Err)
				}
				released.Add(1)
			},
		})
		defer closeLocker()
		h := submitOnceOn(t, Quorum(locker), SubmitConfig{Window: true, RequireLock: true}, slow(100*time.Millisecond))
		if got := status(h); got != http.StatusOK {
			t.Fatalf("first: %d", got)
		}
		time.Sleep(4800 * time.Millisecond)
		again := record(h, request("POST", "/orders", "{}"))
		wantProblem(t, again, http.StatusTooManyRequests, "submitted-twice")
		if after := again.header.Get("Retry-After"); after != "1" {
			t.Errorf("Retry-After %q, 100ms before the end", after)
		}
		time.Sleep(110 * time.Millisecond)
		if got := status(h); got != http.StatusOK {
			t.Errorf("after the window: %d", got)
		}
		time.Sleep(10 * time.Second)
		if lost.Load() != 0 || released.Load() != 2 {
			t.Errorf("%d leases lost, %d released", lost.Load(), released.Load())
		}
	})
}

// Without renewal the lease ends under a handler that takes longer; with it, the
// guard lasts as long as the handler.
func TestLongHandlerOnTheQuorumLock(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			locker, closeLocker := quorumInABubble(t, nil)
			defer closeLocker()
			h := submitOnceOn(t, Quorum(locker), SubmitConfig{RequireLock: true, Renew: renewed}, slow(8*time.Second))
			want := map[bool]int{false: http.StatusOK, true: http.StatusTooManyRequests}[renewed]
			go status(h)
			time.Sleep(4900 * time.Millisecond)
			if got := status(h); got != http.StatusTooManyRequests {
				t.Errorf("renewed %t, within the TTL: %d", renewed, got)
			}
			time.Sleep(200 * time.Millisecond)
			if got := status(h); got != want {
				t.Errorf("renewed %t, after the TTL: %d, want %d", renewed, got, want)
			}
			time.Sleep(time.Minute)
			if got := status(h); got != http.StatusOK {
				t.Errorf("renewed %t, after the handler: %d", renewed, got)
			}
		})
	}
}
