package cluster

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// row is a scenario.
type row struct {
	name    string
	durable bool // the nodes, and the clients know
	clocks  bool // the nodes have clocks of their own
	run     func(*scenario)

	// Where it does not run, and why.
	not map[string]string
}

// The names of the backends.
const (
	onProcesses  = "processes"
	onContainers = "containers"
	onCompose    = "compose"
)

// Why a row does not run on a backend.
const (
	noNetwork = "a process has no network of its own to be taken off; what that does to clients is done by their links in the rows beside it"
	oneClock  = "a container has the clock of its machine, and what gives a process another is built for the libraries of this machine, not of an image"
	keepsData = "the masters of docker-compose.cluster.yml are durable"
	sameThere = "what happens to links, clients and settings does not go by who has made the container: see TestContainers"
)

// Both kinds of containers are one backend, made in two ways. What those of the file
// are for is shown by rows in which masters go and come back.
var elsewhere = map[string]string{onCompose: sameThere}

// table is what runs on every backend.
var table = []row{
	{name: "one master is killed", durable: true, run: killed(1), not: elsewhere},
	{name: "two masters are killed", durable: true, run: killed(2)},
	{name: "a majority is killed and comes back with its data", durable: true, run: majority},
	{name: "a majority is killed and comes back empty", run: majority, not: map[string]string{onCompose: keepsData}},
	{name: "all masters are restarted, one after the other", durable: true, run: rolling},
	{name: "two masters pause", durable: true, run: paused},
	{name: "two masters are taken off the network", durable: true, run: disconnected, not: map[string]string{onProcesses: noNetwork}},
	{name: "two masters are cut off", durable: true, run: links("connections cut and refused", (*redisproc.Proxy).Cut,
		func(t redisproc.Tally) int { return t.Cut + t.Refused }), not: elsewhere},
	{name: "nothing comes to two masters", durable: true, run: links("bytes swallowed", hole(redisproc.Requests),
		func(t redisproc.Tally) int { return t.Swallowed }), not: elsewhere},
	{name: "nothing comes from two masters", durable: true, run: links("bytes swallowed", hole(redisproc.Replies),
		func(t redisproc.Tally) int { return t.Swallowed }), not: elsewhere},
	{name: "two masters are slow", durable: true, run: links("answers late", slow,
		func(t redisproc.Tally) int { return t.Lagged }), not: elsewhere},
	{name: "two masters are read-only", durable: true, run: refused(readOnly), not: elsewhere},
	{name: "two masters are out of memory", durable: true, run: refused(outOfMemory), not: elsewhere},
	{name: "two masters have another password", durable: true, run: refused(password), not: elsewhere},
	{name: "two masters are busy", durable: true, run: refused(busy), not: elsewhere},
	{name: "clocks of clients are wrong", durable: true, run: clientClocks, not: elsewhere},
	{name: "clocks of masters are stepped", durable: true, clocks: true, run: nodeClocks,
		not: map[string]string{onContainers: oneClock, onCompose: oneClock}},
	{name: "a replica is promoted behind one address", run: promoted, not: map[string]string{onCompose: keepsData}},
	{name: "a client is stopped past its lease, and the resource checks fences", durable: true, run: late},
	{name: "a client is stopped past its lease, and nobody checks fences", durable: true, run: careless, not: elsewhere},
	{name: "clients are killed while they hold", durable: true, run: holderKilled, not: elsewhere},
}

// field-reports: 23, 50
func TestProcesses(t *testing.T) { run(t, processes(t)) }

func TestContainers(t *testing.T) { run(t, containers(t)) }
func TestCompose(t *testing.T)    { run(t, compose(t)) }

// run runs the table. Where there are several of a backend they take turns.
func run(t *testing.T, several []backend) {
	for i, r := range table {
		t.Run(r.name, func(t *testing.T) {
			b := several[i%len(several)]
			if why := r.not[b.name]; why != "" {
				t.Skip(why)
			}
			if r.clocks {
				redisproc.RequireClock(t)
				b.nodes = nodes.Processes{Clocks: true}
			}
			if b.name != onCompose { // there is one
				t.Parallel()
			}
			r.run(newScenario(t, r.name, b, r.durable, 0))
		})
	}
}
