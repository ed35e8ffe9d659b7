package fencemodel

import "testing"

// Each is found in as few steps as it takes; -v prints them.
func TestFlawsAreFound(t *testing.T) {
	for _, flaw := range []struct {
		name        string
		protocol    Protocol
		timingHolds bool
		losses      int
		breaks      Property
		steps       int
	}{
		{"a counter that is far enough, timing holds", FarEnough(), timingHolds, 0, Unique, 12},
		{"a counter that is far enough, timing broken", FarEnough(), timingBroken, 0, Unique, 11},
		{"the same with a release that raises, timing holds", ReleaseRaises(FarEnough()), timingHolds, 0, Unique, 12},
		{"the same with a release that raises, timing broken", ReleaseRaises(FarEnough()), timingBroken, 0, Unique, 11},
		{"stamping without owning, timing holds", Unowned(), timingHolds, 0, Successive, 12},
		{"owning, with a counter that is far enough, timing broken", OwnedFarEnough(), timingBroken, 0, Unique, 13},
		{"one node loses its data, timing holds", Shipped(), timingHolds, 1, Unique, 9},
		{"one node loses its data, timing broken", Shipped(), timingBroken, 1, Unique, 9},
	} {
		t.Run(flaw.name, func(t *testing.T) {
			m := Model{Protocol: flaw.protocol, TimingHolds: flaw.timingHolds, Losses: flaw.losses,
				Nodes: 3, Attempts: 2, Counters: 2, Sends: 1}
			result := m.Search()
			t.Log(result)
			if result.Broken != flaw.breaks {
				t.Fatalf("broken: %v, want %v", result.Broken, flaw.breaks)
			}
			if got := result.Trace.Len(); got != flaw.steps || result.Depth != got {
				t.Errorf("a trace of %d steps, and depth %d, want %d", got, result.Depth, flaw.steps)
			}
		})
	}
}

// What looks like a flaw and is none is kept too, for whoever wonders.
func TestHarmlessVariantsAreExhausted(t *testing.T) {
	for _, variant := range []struct {
		name   string
		model  Model
		states int
		deep   bool
	}{
		// Only the owner moves the counter, so whatever it reaches is still the
		// owner's. It costs a round trip, as grants agree less often.
		{"a request sent again counts again, timing holds",
			Model{Protocol: ResendCounts(Shipped()), TimingHolds: timingHolds, Attempts: 2, Sends: 2}, 90_918, false},
		{"a request sent again counts again, timing broken",
			Model{Protocol: ResendCounts(Shipped()), TimingHolds: timingBroken, Attempts: 2, Sends: 2}, 2_030_391, true},

		// It moves the counter under another's lock, but nobody counts the node for
		// having done so. It costs the owner its stamp there.
		{"release raises without owning, timing holds",
			Model{Protocol: ReleaseRaises(Shipped()), TimingHolds: timingHolds, Attempts: 2, Counters: 2, Sends: 1}, 9_748, false},
		{"release raises without owning, timing broken",
			Model{Protocol: ReleaseRaises(Shipped()), TimingHolds: timingBroken, Attempts: 2, Counters: 2, Sends: 1}, 68_670, false},
		{"release raises without owning, three attempts, timing holds",
			Model{Protocol: ReleaseRaises(Shipped()), TimingHolds: timingHolds, Attempts: 3, Sends: 1}, 344_072, true},
		{"release raises without owning, three attempts, timing broken",
			Model{Protocol: ReleaseRaises(Shipped()), TimingHolds: timingBroken, Attempts: 3, Sends: 1}, 2_395_723, true},

		// Unique and Ordered rest on the stamp having raised the counter itself;
		// ownership is for Successive.
		{"stamping without owning, timing broken",
			Model{Protocol: Unowned(), TimingHolds: timingBroken, Attempts: 2, Counters: 2, Sends: 1}, 150_733, false},
		{"stamping without owning, three attempts, timing broken",
			Model{Protocol: Unowned(), TimingHolds: timingBroken, Attempts: 3, Sends: 1}, 10_281_252, true},

		// The majority from whose grants the fence was chosen is still owned while
		// timing holds, so nobody else has returned meanwhile.
		{"owning, with a counter that is far enough, timing holds",
			Model{Protocol: OwnedFarEnough(), TimingHolds: timingHolds, Attempts: 3, Sends: 1}, 139_267, false},
	} {
		t.Run(variant.name, func(t *testing.T) {
			if variant.deep && !*deep {
				t.Skip("only with -model.deep")
			}
			variant.model.Nodes = 3
			exhaust(t, variant.model, variant.states)
		})
	}
}
