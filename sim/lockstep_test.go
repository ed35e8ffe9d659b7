package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// lockStep is three rivals, each with a node of its own nearby, who begin in one
// nanosecond: each has a node before the others, and nobody a quorum.
func lockStep(t *testing.T, nodes string, backoff func(n int) time.Duration) Result {
	t.Helper()
	script := "timely\nkeeping\nnodes 3\nclients 3\nttl 1s\ndelay 8ms\napart\n" + nodes
	for c := 1; c <= 3; c++ {
		script += fmt.Sprintf("at 50ms c%d acquire k 10s\nat 60ms c%d release k\n", c, c)
	}
	p, err := Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	p.Backoff = backoff
	r := Run(t, p)
	for _, v := range r.Violations {
		t.Error(v)
	}
	return r
}

// TestRivalsInLockStepComeThrough: those who failed together must not try again
// together (I7). The world draws waits by the seed; here they are the library's.
func TestRivalsInLockStepComeThrough(t *testing.T) {
	first, limit := 2*time.Millisecond, 250*time.Millisecond
	if r := lockStep(t, "terse\n", redlock.FullJitter(first, limit)); r.Grants != 3 {
		t.Errorf("%d of 3 have come through:\n%q", r.Grants, r.Story)
	}
	inStep := func(n int) time.Duration { return min(first<<min(n, 10), limit) }
	// Lock step it is: where all wait as long, nobody comes through.
	if r := lockStep(t, "terse\n", inStep); r.Grants != 0 {
		t.Errorf("%d have come through although nobody is spread:\n%q", r.Grants, r.Story)
	}
	// Where nodes say who was before them, rivals ask one node first, and only the
	// one that it grants asks the others.
	if r := lockStep(t, "", inStep); r.Grants != 3 {
		t.Errorf("%d of 3 have come through with a gate:\n%q", r.Grants, r.Story)
	}
}
