// Package sim runs the real Locker of package redlock, with its lanes, leases and renewals,
// in a world of simulated nodes, links and clocks, and judges it by what every node
// held at every moment. One seed is one schedule of clients and faults, and repeats
// exactly. docs/simulation.md is the introduction.
package sim
