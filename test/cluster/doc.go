// Package cluster tests the lock as a whole under real faults: clients that are
// processes of their own, five masters that are processes or containers, and
// between each two a proxy. It has a module of its own, so that nobody who imports
// the lock inherits what starts containers.
//
// TestProcesses, TestContainers and TestCompose run the scenarios of one table.
// TestNemesis does at random what the scenarios do one by one:
//
//	go test -run TestNemesis -nemesis.for 30m -nemesis.backend containers -nemesis.seed 7
//
// Each run leaves a report: a line of the test's output, and a file with -artifacts.
package cluster
