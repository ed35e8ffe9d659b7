//go:build race

package sim

// slower is by how much the race detector slows schedules down. It also has
// goroutines run in any order, so that a seed which repeats with it depends on none.
const slower = 10
