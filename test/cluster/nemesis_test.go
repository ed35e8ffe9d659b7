package cluster

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/test/cluster/client"
)

var (
	nemesisFor     = flag.Duration("nemesis.for", 12*time.Second, "how long the nemesis is at work; longer runs want -timeout too")
	nemesisSeed    = flag.Uint64("nemesis.seed", 0, "what it does; 0 draws one")
	nemesisBackend = flag.String("nemesis.backend", "", "where: processes, containers or compose; all by default")
)

// TestNemesis has everything happen at random, half of the time to nodes that are
// durable and half to nodes that are not. What it does, and in which order, is
// decided by the seed; when, also by the machine.
func TestNemesis(t *testing.T) {
	seed := *nemesisSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, name := range []string{onProcesses, onContainers, onCompose} {
		if *nemesisBackend != "" && *nemesisBackend != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			all := backends[name](t)
			b := all[seed%uint64(len(all))]
			for _, durable := range []bool{true, false} {
				if name == onCompose && !durable {
					continue
				}
				t.Run(fmt.Sprintf("durable=%v", durable), func(t *testing.T) { strike(t, b, durable, seed) })
			}
		})
	}
}

// nemesis is what happens to a scenario.
type nemesis struct {
	*scenario
	draw   *rand.Rand
	active []*fault
	begun  map[string]int
	seen   map[string]int // those of begun that have been seen to happen
	// unwell is until when a node is not what it was before, though nothing is done
	// to it any more.
	unwell []time.Duration
}

// fault is something that lasts.
type fault struct {
	kind  string
	node  int // that it happens to as a whole, or -1
	p     *process
	until time.Duration
	end   func()
}

func strike(t *testing.T, b backend, durable bool, seed uint64) {
	length := *nemesisFor / 2
	t.Logf("go test -run TestNemesis -nemesis.backend %s -nemesis.seed %d -nemesis.for %v", b.name, seed, *nemesisFor)
	s := newScenario(t, "nemesis", b, durable, length)
	s.report.Seed = seed
	n := &nemesis{
		scenario: s, draw: rand.New(rand.NewPCG(seed, 1)), begun: map[string]int{}, seen: map[string]int{},
		unwell: make([]time.Duration, len(s.nodes)),
	}
	for i := range 6 {
		n.start(1, 2, n.settings(i))
	}
	n.progress(20)
	for end := client.Now() + length; client.Now() < end; {
		n.pass(n.upTo(250 * time.Millisecond))
		n.expire(client.Now())
		n.act()
	}
	n.expire(never)
	n.answer(n.nodes)
	n.progress(50)
	v := n.judge()
	n.count()
	n.clean(v)
}

const never = 1 << 62

// settings are those of the ith process: some have clocks of their own. Wall clocks may
// be as wrong as they like where nodes keep their data. Where these forget, fences are
// ordered by clocks that are right within 0.75 s (docs/safety.md, section 7): with a
// minute, one soon went back.
func (n *nemesis) settings(i int) func(*client.Settings) {
	step := -time.Minute
	if !n.durable {
		step = -time.Second / 2
	}
	return func(c *client.Settings) {
		c.Hold = ttl / 10
		switch i % 6 {
		case 0:
			c.Rate = 0.996
		case 1:
			c.Rate = 1.004
		case 2:
			c.Rate, c.Step = 1, step
		case 3:
			c.Hold = ttl
		}
	}
}

func (n *nemesis) upTo(d time.Duration) time.Duration { return time.Duration(n.draw.Int64N(int64(d))) }

// begin has a fault last for up to so long.
func (n *nemesis) begin(f fault, longest time.Duration) {
	f.until = client.Now() + 50*time.Millisecond + n.upTo(longest)
	n.begun[f.kind]++
	n.active = append(n.active, &f)
}

// expire ends faults whose time is over.
func (n *nemesis) expire(now time.Duration) {
	n.active = slices.DeleteFunc(n.active, func(f *fault) bool {
		if f.until > now {
			return false
		}
		f.end()
		return true
	})
}

// act lets something happen.
func (n *nemesis) act() {
	switch n.draw.IntN(10) {
	case 0, 1, 2:
		n.actOnNode()
	case 3:
		n.actOnClient()
	default:
		n.actOnLinks()
	}
}

// well are nodes to which nothing happens.
func (n *nemesis) well() (well []int) {
	now := client.Now()
	for i := range n.nodes {
		if n.unwell[i] <= now && !slices.ContainsFunc(n.active, func(f *fault) bool { return f.node == i }) {
			well = append(well, i)
		}
	}
	return well
}

// victim is a node to which something may happen, and how long. Mostly a majority
// stays well; now and then it does not, for a short time.
func (n *nemesis) victim() (node int, longest time.Duration, ok bool) {
	well := n.well()
	reckless := n.draw.IntN(8) == 0
	switch {
	case len(well) == 0:
		return 0, 0, false
	case len(well) > 3:
		longest = 3 * time.Second
	case reckless:
		longest = time.Second
	default:
		return 0, 0, false
	}
	return well[n.draw.IntN(len(well))], longest, true
}

// count puts the faults into the report. What has often been begun and never been
// seen has not happened.
func (n *nemesis) count() {
	for _, p := range n.clients {
		for _, l := range p.links {
			t := l.Tally()
			for kind, happened := range map[string]int{
				"cut": t.Cut + t.Refused, "hole": t.Swallowed, "hold": t.Held, "late": t.Late, "lag": t.Lagged, "lose": t.Lost, "mute": t.Muted,
			} {
				n.seen[kind] += happened
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(n.begun)) {
		n.happened("%s %d", kind, n.begun[kind])
		const often = 10
		if n.begun[kind] >= often && n.seen[kind] == 0 {
			n.Errorf("%q was begun %d times and has never been seen to happen", kind, n.begun[kind])
		}
	}
}
