package sim

import (
	"maps"
	"slices"
	"time"
)

// drawFaults draws which kinds of faults a schedule has, and then the faults.
func drawFaults(p *Plan) []Fault {
	d := dice(mix(p.Seed)).on(forFaults)
	var names []string // each as often as it is to come
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		switch {
		case k.breaks == timing && p.Timely, k.breaks == memory && p.Keeping:
			continue
		case k.breaks == durable && (p.Durable || !p.Timely):
			continue // beyond the drift, nothing is promised of fences that are lost
		}
		weight := k.often
		if weight == 0 {
			weight = 1
		}
		if d.chance(0.35 * weight) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	// Faults come while something is going on.
	end := min(p.Length, time.Duration(p.Acts)*(p.Think+p.beat()/4+time.Duration(p.Long*float64(p.beat())*2)))
	var faults []Fault
	stepped := map[[2]int]bool{} // a clock is stepped once, so that it is not too far off
	for range pick(&d, 0, 1, 2, 3, 4, 6, 8, 12) {
		name := pick(&d, names...)
		k := kinds[name]
		f := Fault{Kind: name, Node: -1, Client: -1, At: d.about(500*time.Microsecond, end)}
		if d.chance(0.1) {
			f.At = d.between(0, 2*time.Millisecond)
		}
		if k.target&aNode != 0 {
			f.Node = d.below(p.Nodes)
		}
		if k.target&aClient != 0 {
			f.Client = d.below(p.Clients)
		}
		if k.draw != nil {
			k.draw(&d, p, &f)
		} else {
			f.For = d.about(time.Millisecond, 3*p.beat())
		}
		if k.target != aLink && f.For == 0 {
			if who := [2]int{f.Node, f.Client}; stepped[who] {
				continue
			} else {
				stepped[who] = true
			}
		}
		faults = append(faults, f)
	}
	return faults
}
