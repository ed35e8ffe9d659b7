package sim

import (
	"slices"
	"testing"
)

// Shorten leaves out of a plan that violates something whatever it violates
// something without: one fault, one kind of weather, one lease or client at a time.
// What is drawn for the rest stays as it is.
func Shorten(t *testing.T, p Plan) Plan {
	for again := true; again; {
		again = false
		for _, q := range p.shorter() {
			if len(Run(t, q).Violations) > 0 {
				p, again = q, true
				break
			}
		}
	}
	return p
}

// shorter are the plans that lack one thing.
func (p Plan) shorter() (all []Plan) {
	for i := range p.Faults {
		q := p
		q.Faults = slices.Delete(slices.Clone(p.Faults), i, i+1)
		all = append(all, q)
	}
	for i, s := range p.shares() {
		if *s.is != 0 {
			q := p
			*q.shares()[i].is = 0
			all = append(all, q)
		}
	}
	if p.MaxHold != 0 {
		q := p
		q.MaxHold = 0
		all = append(all, q)
	}
	if p.Acts > 1 {
		q := p
		q.Acts--
		all = append(all, q)
	}
	if p.Clients > 1 && !slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Client == p.Clients-1 }) {
		q := p
		q.Clients--
		all = append(all, q)
	}
	return all
}
