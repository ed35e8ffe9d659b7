package sim

import (
	"errors"
	"fmt"
	"time"
)

// Fault is one thing that goes wrong at a moment, and for a while if it is of a
// kind that ends.
type Fault struct {
	Kind         string
	At, For      time.Duration
	Node, Client int           // which, counted from 0; -1 is all, and of no matter to some kinds
	Size         time.Duration // how far a clock is stepped, or how old what is lost
	Rate         float64       // by how much a clock is fast
}

// String is the fault as a line of a script.
func (f Fault) String() string { return fmt.Sprintf("at %v %s", f.At, f.what()) }

func (f Fault) what() (s string) {
	if f.For != 0 {
		s = fmt.Sprintf("for %v ", f.For)
	}
	s += f.Kind
	for _, who := range []struct {
		target target
		letter string
		i      int
	}{{aClient, "c", f.Client}, {aNode, "n", f.Node}} {
		switch {
		case kinds[f.Kind].target&who.target == 0:
		case who.i < 0:
			s += " " + who.letter + "*"
		default:
			s += fmt.Sprint(" ", who.letter, who.i+1)
		}
	}
	if f.Size != 0 {
		s += fmt.Sprint(" by ", f.Size)
	}
	if f.Rate != 0 {
		s += fmt.Sprint(" rate ", f.Rate)
	}
	return s
}

// planFault puts a fault on the agenda.
func (w *world) planFault(f Fault) {
	k := kinds[f.Kind]
	w.pending++
	w.at(f.At, rankFault, false, func() {
		if w.calm {
			return
		}
		w.pending--
		w.trace.add(trFault, hashOf(f.Kind), uint64(f.At))
		w.tell("%s", f.what())
		over := k.begin(w, f)
		if over == nil {
			return
		}
		w.count(f.Kind)
		w.afflictions = append(w.afflictions, &over)
		w.over = max(w.over, w.now+f.For)
		w.after(f.For, rankFault, false, func() {
			if over != nil && f.For > 0 {
				w.tell("over: %s", f.what())
			}
			w.relieve(&over)
		})
	})
}

// relieve ends a fault, once.
func (w *world) relieve(over *func()) {
	if *over != nil {
		(*over)()
		*over = nil
	}
}

// kind is a kind of fault: whom it befalls, what it breaks, how it is drawn, and
// what it does. Adding one to the table is all that a new kind takes.
type kind struct {
	target target
	breaks assumption
	often  float64                          // how much of the swarm's attention it gets; 0 means 1
	draw   func(d *dice, p *Plan, f *Fault) // how long and how far; nil means up to three TTLs
	// begin is called with world.mu held. It returns what ends the fault, or nil if
	// it did not happen.
	begin func(w *world, f Fault) func()
}

type target uint8

const (
	aNode   target = 1 << iota
	aClient        // its process
	aLink   = aNode | aClient
)

// check says whom else a fault must befall.
func (t target) check(f Fault) error {
	switch {
	case t == aNode && (f.Node < 0 || f.Client >= 0):
		return errors.New("befalls one node: want n1, n2, …")
	case t == aClient && (f.Client < 0 || f.Node >= 0):
		return errors.New("befalls one client: want c1, c2, …")
	}
	return nil
}

// assumption is what a kind may only be used without.
type assumption uint8

const (
	nothing assumption = iota
	timing             // Plan.Timely
	memory             // Plan.Keeping
	durable            // Plan.Durable, or Timely
)
