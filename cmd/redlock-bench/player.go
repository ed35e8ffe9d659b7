package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// faultPatience is how long one act of a drill may take, its proof included.
const faultPatience = 30 * time.Second

// patient is a node that a drill harms and heals. Of one node nothing is called
// while something else is under way.
type patient interface {
	// harm makes a fault, and returns when it is there. A restart is over then.
	harm(ctx context.Context, a act) error

	// heal ends a fault that lasts. The node may take a moment to answer again.
	heal(ctx context.Context, fault faultKind) error
}

// played is an act that has been played. Times are counted from where the load
// began.
type played struct {
	act
	began time.Duration   // just before
	done  time.Duration   // it was there, or for heal the nodes answered again
	back  []time.Duration // when each of the nodes answered again, if they were to
	seen  time.Duration   // whether it had happened was known; 0 until then
	proof string          // what showed that it had happened
	err   error           // why it did not, or why that was not seen
}

// player plays a plan on nodes.
type player struct {
	plan     []act
	patients []patient
	witness  witness
	fault    []faultKind // of each node, "" for none
}

func newPlayer(plan []act, patients []patient, w witness) *player {
	return &player{plan: plan, patients: patients, witness: w, fault: make([]faultKind, len(patients))}
}

// play does what is planned, each act at its time after epoch, and tells of each
// when it has begun and when it was seen to have happened. It ends early when ctx
// does, but not in the middle of an act, and returns how many there were.
func (p *player) play(ctx context.Context, epoch time.Time, tell func(played)) int {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for n, a := range p.plan {
		timer.Reset(time.Until(epoch.Add(a.at)))
		select {
		case <-ctx.Done():
			return n
		case <-timer.C:
			p.do(ctx, a, epoch, tell)
		}
	}
	return len(p.plan)
}

// healAll ends all faults that there are, also after an interrupt.
func (p *player) healAll(ctx context.Context, epoch time.Time, tell func(played)) {
	a := act{kind: faultHeal}
	for n, f := range p.fault {
		if f != "" {
			a.nodes = append(a.nodes, n)
		}
	}
	if len(a.nodes) > 0 {
		a.at = time.Since(epoch)
		p.do(ctx, a, epoch, tell)
	}
}

// do does one act on all its nodes at once.
func (p *player) do(ctx context.Context, a act, epoch time.Time, tell func(played)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), faultPatience)
	defer cancel()
	before := make([]sight, len(p.patients))
	err := each(a.nodes, func(n int) (err error) {
		before[n], err = p.witness.before(ctx, n, a.kind, p.fault[n])
		return err
	})
	r := played{act: a, began: time.Since(epoch)}
	tell(r)
	if err == nil {
		err = each(a.nodes, func(n int) error { return p.change(ctx, n, a) })
	}
	r.done = time.Since(epoch)
	if err == nil {
		proofs, back := make([]string, len(p.patients)), make([]time.Duration, len(p.patients))
		err = each(a.nodes, func(n int) (err error) {
			proofs[n], err = p.witness.after(ctx, n, a, before[n])
			back[n] = time.Since(epoch)
			return err
		})
		r.proof = proofs[a.nodes[0]]
		if !a.kind.lasts() {
			r.done = time.Since(epoch)
			for _, n := range a.nodes {
				r.back = append(r.back, back[n])
			}
		}
	}
	r.err, r.seen = err, time.Since(epoch)
	tell(r)
}

// change does to one node what an act says.
func (p *player) change(ctx context.Context, n int, a act) error {
	if a.kind == faultHeal {
		err := p.patients[n].heal(ctx, p.fault[n])
		p.fault[n] = ""
		return err
	}
	p.fault[n] = a.kind // also if it fails halfway: then there is something to heal
	err := p.patients[n].harm(ctx, a)
	if err == nil && !a.kind.lasts() {
		p.fault[n] = ""
	}
	return err
}

// each does the same for some nodes at once and waits for all.
func each(nodes []int, do func(n int) error) error {
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			if err := do(n); err != nil {
				errs[i] = fmt.Errorf("n%d: %w", n+1, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
