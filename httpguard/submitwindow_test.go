package httpguard

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a handler that takes d.
func slow(d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { time.Sleep(d) })
}

// status is what a POST of the same order gets now.
func status(h http.Handler) int { return record(h, request("POST", "/orders", "{}")).status }

func TestGuardEndsWithItsTTLUnlessItIsRenewed(t *testing.T) {
	for _, c := range []struct {
		renew bool
		at    time.Duration
		want  int
	}{
		{false, 4900 * time.Millisecond, 429},
		{false, 5100 * time.Millisecond, 200},
		{true, 4900 * time.Millisecond, 429},
		{true, 7900 * time.Millisecond, 429},
		{true, 8100 * time.Millisecond, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := submitOnceOn(t, newMemoryLock(), SubmitConfig{Renew: c.renew}, slow(8*time.Second))
			go status(h)
			time.Sleep(c.at)
			if got := status(h); got != c.want {
				t.Errorf("renewed %t, after %v: %d, want %d", c.renew, c.at, got, c.want)
			}
			time.Sleep(10 * time.Second)
		})
	}
}

// Retry-After is a whole number from 1 to what is left, rounded up.
//
// field-reports: 87
func TestWindowOutlastsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := newMemoryLock()
		h := submitOnceOn(t, lock, SubmitConfig{Window: true}, slow(100*time.Millisecond))
		begun := time.Now()
		if got := status(h); got != 200 {
			t.Fatalf("first: %d", got)
		}
		for at, want := range map[time.Duration]string{
			200 * time.Millisecond: "5", 1800 * time.Millisecond: "4", 4800 * time.Millisecond: "1", 4999 * time.Millisecond: "1",
		} {
			go func() {
				time.Sleep(at - time.Since(begun))
				got := record(h, request("POST", "/orders", "{}"))
				wantProblem(t, got, http.StatusTooManyRequests, "submitted-twice")
				if after := got.header.Get("Retry-After"); after != want {
					t.Errorf("after %v: Retry-After %q, want %q", at, after, want)
				}
			}()
		}
		time.Sleep(5001*time.Millisecond - time.Since(begun))
		synctest.Wait()
		if keys := lock.keys(); len(keys) > 0 {
			t.Errorf("held after the window: %q", keys)
		}
		if got := status(h); got != 200 {
			t.Errorf("after the window: %d", got)
		}
		synctest.Wait()
	})
}
