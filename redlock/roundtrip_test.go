package redlock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Nodes are asked at once and the fastest quorum decides: acquire, extend and
// release take the round trip to its slowest member, and a node that never answers
// costs nothing. It is told of the release when it does.
//
// field-reports: 100, 102
func TestACallTakesTheRoundTripOfTheFastestQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		lags []int // ms; a node with a negative one is hung
		want time.Duration
	}{
		"all alike":          {[]int{50, 50, 50, 50, 50}, 50},
		"each another":       {[]int{80, 10, 40, 70, 20}, 40},
		"one hung":           {[]int{10, 10, 10, 10, -1}, 10},
		"two hung":           {[]int{-1, 10, 10, 30, -1}, 30},
		"of three":           {[]int{5, 90, 60}, 60},
		"of three, one gone": {[]int{-1, 90, 60}, 90},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(len(c.lags))
				l := newLocker(t, nodes, Config{NodeTimeout: time.Second})
				synctest.Wait()
				var resume []func()
				for i, n := range mem {
					if c.lags[i] < 0 {
						resume = append(resume, n.stop())
					}
					n.set(func(n *memNode) { n.lag = time.Duration(max(0, c.lags[i])) * time.Millisecond })
				}
				timed := func(what string, call func() error) {
					t.Helper()
					began := time.Now()
					if err := call(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if took := time.Since(began); took != c.want*time.Millisecond {
						t.Errorf("%s took %v, want %v", what, took, c.want*time.Millisecond)
					}
					time.Sleep(200 * time.Millisecond) // the slow ones have answered too
				}
				for range 50 {
					var lease *Lease
					timed("acquire", func() (err error) { lease, err = l.TryAcquire(t.Context(), "k"); return err })
					timed("extend", func() error { return lease.Extend(t.Context(), 10*time.Second) })
					timed("release", func() error { return lease.Release(t.Context()) })
				}
				for _, r := range resume {
					r()
				}
				time.Sleep(2 * time.Second)
				for _, n := range mem {
					if n.size() > 0 {
						t.Errorf("%s keeps the key", n)
					}
				}
			})
		})
	}
}
