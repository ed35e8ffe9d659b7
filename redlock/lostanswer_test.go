package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/respfake"
)

// A script whose answer is lost on all nodes has run once on each, and is not run
// again: the acquire is a clean failure, the extension leaves the lease as it was,
// and no fence comes twice.
//
// field-reports: 29
func TestScriptsWhoseAnswersAreLostAreNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 5, respfake.Options{})
		l := newLocker(t, nodes, Config{Fenced: true, TTL: 20 * time.Second})
		synctest.Wait()
		// losing has the next answer of every node lost while call runs, and counts
		// how often each has run the script.
		losing := func(sum, source string, call func()) {
			t.Helper()
			synctest.Wait() // what a majority has not waited for has run as well
			ran := func(s *respfake.Server) (count int) {
				for _, e := range s.Log("eval", "evalsha") {
					if e.Err == "" && (e.Args[0] == sum || e.Args[0] == source) {
						count++
					}
				}
				return count
			}
			var before []int
			for _, s := range servers {
				before = append(before, ran(s))
				s.Lose(1, "eval", "evalsha")
			}
			call()
			time.Sleep(time.Second) // connected again, and released
			lost := 0
			for i, s := range servers {
				s.Lose(0)
				n := ran(s) - before[i]
				if n > 1 {
					t.Errorf("node %d ran it %d times", i+1, n)
				}
				lost += n
			}
			if lost < 3 {
				t.Errorf("%d nodes ran it: the test shows nothing", lost)
			}
		}
		var last fence.Token
		for round := range 5 {
			losing(scripts[OpAcquire].sum, acquireSource, func() {
				if lease, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNoQuorum) || lease != nil {
					t.Fatalf("round %d: got %v, want ErrNoQuorum", round, err)
				}
			})
			for i, s := range servers {
				if tokenOn(s, "k") != "" {
					t.Errorf("round %d: node %d keeps the key", round, i+1)
				}
			}
			lease := acquire(t, l, "k")
			if lease.Fence() <= last {
				t.Errorf("round %d: fence %d after %d", round, lease.Fence(), last)
			}
			last = lease.Fence()
			if err := lease.Extend(t.Context(), 20*time.Second); err != nil { // the nodes know the script
				t.Error(err)
			}
			losing(scripts[OpExtend].sum, extendSource, func() {
				if err := lease.Extend(t.Context(), 20*time.Second); !errors.Is(err, ErrNoQuorum) || lease.Remaining() == 0 {
					t.Errorf("round %d: got %v, %v left", round, err, lease.Remaining())
				}
			})
			if err := lease.Extend(t.Context(), 20*time.Second); err != nil || lease.Fence() != last {
				t.Errorf("round %d: afterwards %v, fence %d", round, err, lease.Fence())
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
	})
}

// A release that ran and whose answer is lost is repeated with the same token until
// it is answered, and takes nothing from whoever holds the lock by then.
func TestAReleaseWhoseAnswerIsLostIsRepeatedHarmlessly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		a, b := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{})
		cycle(t, a, "scripts")
		synctest.Wait()
		for round := range 10 {
			lease := acquire(t, a, "k")
			synctest.Wait()
			before := asked(servers[0], "evalsha")
			for _, s := range servers {
				s.Lose(1, "evalsha")
			}
			if err := lease.Release(t.Context()); !errors.Is(err, ErrNoQuorum) {
				t.Errorf("round %d: got %v, want ErrNoQuorum", round, err)
			}
			next := acquire(t, b, "k")
			time.Sleep(3 * time.Second)
			if n := asked(servers[0], "evalsha") - before; n < 2 {
				t.Errorf("round %d: it was sent %d times: the test shows nothing", round, n)
			}
			held := 0
			for i, s := range servers {
				s.Lose(0)
				switch tokenOn(s, "k") {
				case next.Token():
					held++
				case lease.Token():
					t.Errorf("round %d: node %d holds what was released", round, i+1)
				}
			}
			if held < 2 { // one may have denied it, and been released later
				t.Errorf("round %d: %d nodes hold the next lease", round, held)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
	})
}
