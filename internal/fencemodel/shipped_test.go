package fencemodel

import (
	"flag"
	"testing"
)

var deep = flag.Bool("model.deep", false, "search the larger worlds too: minutes, and up to 1.3 GB")

const timingHolds, timingBroken = true, false

func TestShippedProtocolIsExhausted(t *testing.T) {
	for _, world := range []struct {
		name   string
		model  Model
		states int
		deep   bool
	}{
		{"two attempts, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 3, Attempts: 2, Counters: 2, Proposals: 3, Sends: 1}, 11_683, false},
		{"two attempts, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 3, Attempts: 2, Counters: 2, Proposals: 3, Sends: 1}, 94_807, false},
		{"three attempts, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 3, Attempts: 3, Sends: 1}, 138_161, false},
		{"three attempts, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 3, Attempts: 3, Sends: 1}, 1_183_332, false},
		{"requests carried out twice, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 3, Attempts: 2, Sends: 2}, 113_976, false},
		{"four nodes, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 4, Attempts: 2, Counters: 1, Proposals: 2, Sends: 1}, 15_208, false},
		{"four nodes, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 4, Attempts: 2, Counters: 1, Proposals: 2, Sends: 1}, 254_137, false},
		{"five nodes, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 5, Attempts: 2, Counters: 1, Sends: 1}, 114_937, false},

		{"three attempts and wider counters, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 3, Attempts: 3, Counters: 2, Proposals: 3, Sends: 1}, 1_972_690, true},
		{"three attempts and wider counters, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 3, Attempts: 3, Counters: 2, Proposals: 3, Sends: 1}, 18_571_224, true},
		{"requests carried out twice and wider counters, timing holds",
			Model{TimingHolds: timingHolds, Nodes: 3, Attempts: 2, Counters: 2, Proposals: 3, Sends: 2}, 758_061, true},
		{"requests carried out twice, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 3, Attempts: 2, Counters: 1, Proposals: 2, Sends: 2}, 12_328_197, true},
		{"five nodes, timing broken",
			Model{TimingHolds: timingBroken, Nodes: 5, Attempts: 2, Counters: 1, Sends: 1}, 3_019_073, true},
	} {
		t.Run(world.name, func(t *testing.T) {
			if world.deep && !*deep {
				t.Skip("only with -model.deep")
			}
			world.model.Protocol = Shipped()
			exhaust(t, world.model, world.states)
		})
	}
}

// exhaust wants a search to go through the whole model and find nothing. That
// it visits as many states as before is part of the test: whoever changes the
// model is to say that it has another size now.
func exhaust(t *testing.T, m Model, states int) {
	t.Helper()
	result := m.Search()
	t.Log(result)
	if result.Broken != Intact {
		t.Fatal("a property is broken")
	}
	if result.States != states {
		t.Errorf("%d states, and %d in the model as it was", result.States, states)
	}
}
