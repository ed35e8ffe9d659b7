package cluster

import "testing"

// row is a scenario.
type row struct {
	name    string
	durable bool // the nodes, and the clients know
	run     func(*scenario)

	// Where it does not run, and why.
	not map[string]string
}

// table is what runs on every backend.
var table = []row{
	{name: "one master is killed", durable: true, run: killed(1)},
	{name: "two masters are killed", durable: true, run: killed(2)},
	{name: "a majority is killed and comes back with its data", durable: true, run: majority},
	{name: "a majority is killed and comes back empty", durable: false, run: majority},
	{name: "all masters are restarted, one after the other", durable: true, run: rolling},
	{name: "two masters pause", durable: true, run: paused},
	{name: "a client is stopped past its lease, and the resource checks fences", durable: true, run: late},
	{name: "a client is stopped past its lease, and nobody checks fences", durable: true, run: careless},
	{name: "clients are killed while they hold", durable: true, run: holderKilled},
}

func TestProcesses(t *testing.T) { run(t, processes(t)) }

// run runs the table. Where there are several of a backend they take turns, but for
// the rows that all of them run.
func run(t *testing.T, several ...backend) {
	for i, r := range table {
		t.Run(r.name, func(t *testing.T) {
			b := several[i%len(several)]
			if why := r.not[b.name]; why != "" {
				t.Skip(why)
			}
			t.Parallel()
			r.run(newScenario(t, r.name, b, r.durable))
		})
	}
}
