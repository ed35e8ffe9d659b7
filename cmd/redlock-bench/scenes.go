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
	Name  string // unique
	Title string // for people
	task  trial.Task
	cast  []string // who is in it: implementations, or for the limit schemes of the pump
	rtt   time.Duration
}

// relayed is what a relay adds to each round trip.
const relayed = 2 * time.Millisecond

// Where workers fight, there are so many.
const crowd = 64

// scenes are what a comparison consists of, in order.
func (s compareSettings) scenes() (all []scene) {
	names := make([]string, len(s.rivals))
	for i, r := range s.rivals {
		names[i] = r.Name
	}
	base := trial.Task{WarmUp: s.warmUp(), Length: s.length}
	for _, mode := range s.modes {
		switch mode {
		case trial.Limit:
			for _, shape := range []struct{ threads, flight int }{{4, 64}, {1, 1}} {
				t := base
				t.Mode, t.Workers, t.Flight = mode, shape.threads, shape.flight
				sc := scene{
					Name:  fmt.Sprintf("limit %dx%d", shape.threads, shape.flight),
					Title: fmt.Sprintf("the machine's limit, %d × %d", shape.threads, shape.flight), task: t,
				}
				for _, scheme := range pump.Schemes {
					sc.cast = append(sc.cast, scheme.Name)
				}
				all = append(all, sc)
			}
		case trial.Uncontended:
			for _, c := range s.workers {
				t := base
				t.Mode, t.Workers = mode, c
				all = append(all, scene{Name: fmt.Sprintf("uncontended c=%d", c), Title: fmt.Sprintf("uncontended, c = %d", c), task: t, cast: names})
			}
		}
	}
	return all
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
