// Package sim is a seeded world in which the real redlock.Locker runs: simulated
// nodes, links and clocks, and all that goes wrong with them.
//
// A [Plan] says who takes part, what is assumed, and what goes wrong and when. [Draw]
// makes one from a seed, [Parse] reads one that was written by hand. [Run] plays it
// and judges what came of it by the truth, which no client knows: what every node held
// at every moment of a time that is right. The same plan gives the same [Result], down
// to the order of all that happened; [Shorten] finds what of a plan is enough.
//
// How it works, what is judged, and how to add a fault or a script is told in
// docs/simulation.md.
package sim
