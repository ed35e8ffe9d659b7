package main

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/pump"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
)

// scene is what all implementations go through alike.
type scene struct {
	Name   string // unique
	Title  string // for people
	task   trial.Task
	cast   []string      // who is in it: implementations, or for the limit schemes of the pump
	rtt    time.Duration // that is added
	single bool          // only the first node is there
}

// relayed is what a relay adds to each round trip.
const relayed = 2 * time.Millisecond

// Where workers fight, there are so many.
const crowd = 64

// scenes are what a comparison consists of, in order.
func (s compareSettings) scenes() (all []scene) {
	for _, mode := range s.modes {
		some := map[string]func() []scene{
			trial.Limit: s.limits, trial.Uncontended: s.uncontended, trial.RTT: s.distant,
			trial.Contended: s.contended, trial.Fault: s.faults, trial.Alive: s.alive,
		}[mode]()
		for _, sc := range some {
			sc.task.Mode = mode
			all = append(all, sc)
		}
	}
	return all
}

// limits are of all nodes and of one, since some use only that.
func (s compareSettings) limits() (all []scene) {
	for _, single := range []bool{false, true} {
		for _, of := range []shape{{4, 64}, {1, 1}} {
			if s.quick && of.flight == 1 || single && s.nodes.count == 1 {
				continue
			}
			nodes := s.nodes.count
			sc := scene{single: single, cast: []string{pump.Schemes[0].Name}}
			if single {
				nodes = 1
			} else {
				for _, scheme := range pump.Schemes[1:] {
					sc.cast = append(sc.cast, scheme.Name)
				}
			}
			sc.Name = limitName(nodes, of)
			sc.Title = fmt.Sprintf("limit on %s, %s × %s", plural(nodes, "node"), plural(of.threads, "thread"), plural(of.flight, "key"))
			sc.task = trial.Task{WarmUp: s.warmUp(), Length: s.length, Workers: of.threads, Flight: of.flight}
			all = append(all, sc)
		}
	}
	return all
}

// shape is how many threads a pump has, and how many keys go out together.
type shape struct{ threads, flight int }

// limitShape is that of the limit for so many workers: one alone has nobody to
// share flights with.
func limitShape(workers int) shape {
	if workers == 1 {
		return shape{1, 1}
	}
	return shape{4, 64}
}

func limitName(nodes int, s shape) string {
	return fmt.Sprintf("limit nodes=%d %dx%d", nodes, s.threads, s.flight)
}

// limitOf is the limit of one in an uncontended scene.
func (s compareSettings) limitOf(who string, workers int) figure {
	nodes := s.nodes.count
	if lock, _ := rival.Named(who); lock.Single {
		nodes = 1
	}
	return figure{limitName(nodes, limitShape(workers)), pump.Schemes[0].Name, "cycles_per_s"}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s compareSettings) uncontended() (all []scene) {
	for _, c := range s.workers {
		all = append(all, scene{
			Name: at(c), Title: fmt.Sprintf("uncontended, c = %d", c),
			task: trial.Task{WarmUp: s.warmUp(), Length: s.length, Workers: c}, cast: s.names(),
		})
	}
	return all
}

func (s compareSettings) distant() (all []scene) {
	for _, c := range s.workers {
		if c < crowd && (c > 1 || s.quick) {
			continue // what happens between the two they show as well
		}
		all = append(all, scene{
			Name: fmt.Sprintf("rtt c=%d", c), Title: fmt.Sprintf("%v of round trip added, c = %d", relayed, c),
			task: trial.Task{WarmUp: s.warmUp(), Length: s.length, Workers: c}, cast: s.names(), rtt: relayed,
		})
	}
	return all
}

func (s compareSettings) contended() (all []scene) {
	length := 2 * s.length // how fairly a lock is shared shows in many handovers only
	if s.quick {
		length = s.length
	}
	for _, lockers := range []int{1, 8} {
		if s.quick && lockers == 1 {
			continue
		}
		title := "one locker"
		if lockers > 1 {
			title = fmt.Sprintf("%d lockers × %d", lockers, crowd/lockers)
		}
		all = append(all, scene{
			Name: contendedName(lockers), Title: fmt.Sprintf("contended, %d workers on one key, %s", crowd, title),
			task: trial.Task{WarmUp: s.warmUp(), Length: length, Workers: crowd, Lockers: lockers, Hold: time.Millisecond},
			cast: s.names(),
		})
	}
	return all
}

// faults are scenes for those who can outlive one.
func (s compareSettings) faults() (all []scene) {
	var quorums []string
	for _, l := range s.rivals {
		if !l.Single {
			quorums = append(quorums, l.Name)
		}
	}
	healthy, faulty, after := s.length, 2*s.length, s.length
	for _, f := range []struct {
		act, words string
		nodes      []int
	}{{trial.Kill, "one node killed", []int{0}}, {trial.Stop, "one node stopped", []int{0}}, {trial.Stop, "two nodes stopped", []int{0, 1}}} {
		if s.quick && (f.act == trial.Kill || len(f.nodes) > 1) || s.nodes.count <= 2*len(f.nodes) {
			continue
		}
		all = append(all, scene{
			Name: faultName(f.act, len(f.nodes)), Title: fmt.Sprintf("%s of %d, c = %d", f.words, s.nodes.count, crowd),
			task: trial.Task{
				WarmUp: s.warmUp(), Length: healthy, Faulty: faulty, After: after, Workers: crowd, Act: f.act, Nodes: f.nodes,
			},
			cast: quorums,
		})
	}
	return all
}

// alive are scenes with more and more leases, for those who say when they renew.
func (s compareSettings) alive() (all []scene) {
	var renewing []string
	for _, l := range s.rivals {
		if l.Renews {
			renewing = append(renewing, l.Name)
		}
	}
	ttl := 30 * time.Second
	if s.quick {
		ttl = 6 * time.Second
	}
	for _, n := range s.leases {
		all = append(all, scene{
			Name: fmt.Sprintf("alive %d", n), Title: fmt.Sprintf("%s leases kept alive by one locker", grouped(float64(n))),
			// Two renewals of each, after the first of those that were acquired last.
			task: trial.Task{WarmUp: ttl/3 + ttl/30, Length: 2*ttl/3 + ttl/30, Leases: n, TTL: ttl}, cast: renewing,
		})
	}
	return all
}

func (s compareSettings) names() (names []string) {
	for _, l := range s.rivals {
		names = append(names, l.Name)
	}
	return names
}

// warmUp is how long a load runs before it counts.
func (s compareSettings) warmUp() time.Duration { return min(s.length/4, 500*time.Millisecond) }

// title is what people call who is in a scene.
func (sc scene) titleOf(name string) string {
	if sc.task.Mode == trial.Limit {
		scheme, _ := pump.Named(name)
		return scheme.Title
	}
	lock, _ := rival.Named(name)
	return lock.Title
}
