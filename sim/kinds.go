package sim

import "time"

// kinds are all kinds of faults.
var kinds = map[string]kind{
	// Nodes. A stopped one reads nothing, and what comes meanwhile afterwards.
	"stop": {target: aNode, often: 2, draw: silence, begin: onNode(func(n *node, _ Fault) func() {
		n.stopped++
		return func() {
			if n.stopped--; n.stopped == 0 {
				n.goOn()
			}
		}
	})},
	"restart": restart(nothing, false, nil),
	"outage":  restart(nothing, true, nil), // of the machine: nobody refuses connections
	"wipe":    often(2, restart(durable, false, func(n *node, _ Fault) { n.wipe() })),
	"stale":   restart(durable, false, func(n *node, f Fault) { n.restore(n.world.now - f.For - f.Size) }),
	"flush": {target: aNode, breaks: memory, draw: sudden, begin: onNode(func(n *node, _ Fault) func() {
		n.data = newData() // and it votes on
		return func() {}
	})},
	"loading":  answers(errLoading),
	"readonly": answers(errReadOnly),
	"oom":      answers(errOOM),
	"noperm":   answers(errNoPerm),
	"refuse":   counts(func(n *node) *int { return &n.refuses }),
	"nokill":   counts(func(n *node) *int { return &n.noKill }),
	"slow":     {target: aNode, draw: within, begin: turnNode},
	"race":     {target: aNode, breaks: timing, draw: beyond, begin: turnNode},
	"leap":     {target: aNode, breaks: timing, draw: step, begin: stepNode(1)},
	"back":     {target: aNode, often: 0.5, draw: step, begin: stepNode(-1)},

	// Links.
	"cut":    {target: aLink, often: 2, draw: onSome, begin: cut(1, 1)},
	"deafen": {target: aLink, draw: onSome, begin: cut(1, 0)}, // the node hears nothing
	"mute":   {target: aLink, draw: onSome, begin: cut(0, 1)}, // … and nothing is heard from it

	// Clients.
	"pause":   {target: aClient, often: 2, begin: halt(false)},
	"suspend": {target: aClient, begin: halt(true)},
	"crash": {target: aClient, often: 2, begin: onClient(func(c *client, f Fault) func() {
		c.crash()
		return c.replace
	})},
	"slowed": {target: aClient, draw: within, begin: turnClient},
	"raced":  {target: aClient, breaks: timing, draw: beyond, begin: turnClient},
	"ahead":  {target: aClient, often: 0.5, draw: step, begin: stepClient(1)},
	"behind": {target: aClient, often: 0.5, draw: step, begin: stepClient(-1)},
}

func often(weight float64, k kind) kind {
	k.often = weight
	return k
}

func onNode(do func(n *node, f Fault) func()) func(w *world, f Fault) func() {
	return func(w *world, f Fault) func() { return do(w.nodes[f.Node], f) }
}

func onClient(do func(c *client, f Fault) func()) func(w *world, f Fault) func() {
	return func(w *world, f Fault) func() {
		if c := w.clients[f.Client]; !c.gone {
			return do(c, f)
		}
		return nil
	}
}

// restart ends a node's process, and begins another.
func restart(breaks assumption, silent bool, lose func(n *node, f Fault)) kind {
	return kind{
		target: aNode, breaks: breaks,
		draw: func(d *dice, p *Plan, f *Fault) {
			f.For = d.about(time.Microsecond, p.beat()*3/2)
			if lose != nil {
				f.Size = d.between(0, 2*time.Second)
			}
		},
		begin: onNode(func(n *node, f Fault) func() {
			n.end(silent)
			return func() {
				if lose != nil {
					lose(n, f)
				}
				n.begin(lose != nil)
			}
		}),
	}
}

// answers has a node answer an error.
func answers(err error) kind {
	return kind{target: aNode, often: 0.5, begin: onNode(func(n *node, _ Fault) func() {
		n.fails = append(n.fails, err)
		return func() {
			for i, e := range n.fails {
				if e == err {
					n.fails = append(n.fails[:i:i], n.fails[i+1:]...)
					return
				}
			}
		}
	})}
}

// counts has a node do something as long as a number is not 0.
func counts(what func(n *node) *int) kind {
	return kind{target: aNode, often: 0.5, begin: onNode(func(n *node, _ Fault) func() {
		*what(n)++
		return func() { *what(n)-- }
	})}
}

func cut(out, back int) func(w *world, f Fault) func() {
	return func(w *world, f Fault) func() {
		var links []*link
		for i, c := range w.clients {
			for j, l := range c.links {
				if (f.Client < 0 || f.Client == i) && (f.Node < 0 || f.Node == j) {
					links = append(links, l)
				}
			}
		}
		turn := func(by int) {
			for _, l := range links {
				l.cutOut += by * out
				l.cutBack += by * back
			}
		}
		turn(1)
		return func() {
			turn(-1)
			for _, l := range links {
				l.heal()
			}
		}
	}
}

func halt(suspend bool) func(w *world, f Fault) func() {
	return onClient(func(c *client, _ Fault) func() {
		c.halt(suspend)
		return func() { c.resume(suspend) }
	})
}

func turnNode(w *world, f Fault) func() {
	n := w.nodes[f.Node]
	n.setClock(1+f.Rate, 0)
	return func() { n.setClock(1, 0) }
}

func stepNode(sign time.Duration) func(w *world, f Fault) func() {
	return onNode(func(n *node, f Fault) func() {
		n.setClock(n.rate, sign*f.Size)
		return func() {}
	})
}

func turnClient(w *world, f Fault) func() {
	return onClient(func(c *client, f Fault) func() {
		c.turn(1 + f.Rate)
		return func() { c.turn(1) }
	})(w, f)
}

func stepClient(sign time.Duration) func(w *world, f Fault) func() {
	return onClient(func(c *client, f Fault) func() {
		c.clock.Step(sign * f.Size)
		if sign > 0 {
			c.jumps = append(c.jumps, jump{c.world.now, f.Size})
		}
		c.resumed = c.world.now
		return func() {}
	})
}

// silence is about as long as most faults, or until connections are given up for dead.
func silence(d *dice, p *Plan, f *Fault) {
	f.For = d.about(time.Millisecond, 3*p.beat())
	if d.chance(0.2) {
		f.For = p.limit() + d.about(time.Millisecond, 2*time.Second)
	}
}

func sudden(*dice, *Plan, *Fault) {}

func within(d *dice, p *Plan, f *Fault) {
	f.Rate = pick(d, -0.0045, 0.0045, 0.009*d.share()-0.0045)
	f.For = p.Length
}

func beyond(d *dice, p *Plan, f *Fault) {
	f.Rate = pick(d, -0.5, 0.5, d.share()-0.3)
	f.For = d.about(p.beat()/10, p.Length)
}

// step is one of a wall clock, which may be off already.
func step(d *dice, p *Plan, f *Fault) {
	f.Size = pick(d, p.clockError()/2, d.about(time.Millisecond, p.clockError()/2))
}

func onSome(d *dice, p *Plan, f *Fault) {
	silence(d, p, f)
	if d.chance(0.2) {
		f.Client = -1
	}
	if d.chance(0.2) {
		f.Node = -1
	}
}
