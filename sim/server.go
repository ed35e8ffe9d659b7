package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// node is a node's machine: its wall clock, its data, the process that serves them
// and the sockets of that.
type node struct {
	world *world
	id    int
	name  string
	data  data

	// The wall clock.
	wallThen time.Duration // what it said, since 1970
	then     time.Duration // at this moment
	rate     float64

	// The process.
	up      bool
	downs   int  // what keeps it down
	forgets bool // it will find less than was there
	silent  bool // the machine is away too, so nobody says that the process is
	run     int  // its number
	booted  time.Duration
	lastID  int64
	sockets []*conn // that are open, in the order in which they were opened
	stopped int     // not 0: it reads nothing
	refuses int     // not 0: it takes no connections
	noKill  int     // not 0: CLIENT KILL is not permitted
	fails   []error // not empty: what it answers instead of the first of these

	// What it has forgotten.
	lost     time.Duration // when its process began that had forgotten something
	forgot   bool
	restored bool
	setBack  bool                      // its clock was
	past     []change                  // what its data were, for restores
	ghosts   map[redlock.Token]phantom // the locks that it has forgotten
}

// phantom is a lock that a node has forgotten, and how long it would have had it.
type phantom struct {
	until  int64
	counts bool
}

// change is what was there before a change of a node's data.
type change struct {
	at      time.Duration
	name    string
	key     *key
	counter *counter
	isKey   bool
}

func newNode(w *world, id int) *node {
	return &node{
		world: w, id: id, name: fmt.Sprint("n", id+1), data: newData(), up: true,
		wallThen: time.Duration(w.start.UnixNano()), rate: 1,
		booted: time.Duration(w.start.UnixNano()) - 1000*time.Hour,
		ghosts: map[redlock.Token]phantom{},
	}
}

// wall is what the node's wall clock says, as time since 1970.
func (n *node) wall() time.Duration {
	return n.wallThen + time.Duration(float64(n.world.now-n.then)*n.rate)
}

// setClock turns the wall clock, and steps it.
func (n *node) setClock(rate float64, step time.Duration) {
	n.wallThen, n.then, n.rate = n.wall()+step, n.world.now, rate
	n.setBack = n.setBack || step < 0
	for token, g := range n.ghosts { // they are over when they would have been
		g.until += step.Milliseconds()
		n.ghosts[token] = g
	}
}

// uptime is as INFO says it.
func (n *node) uptime() time.Duration {
	return (n.wall().Truncate(time.Second) - n.booted.Truncate(time.Second))
}

// has reports whether the node has token for the key called name, or would have if
// it had forgotten nothing, and whether it could count for it.
func (n *node) has(name string, token redlock.Token) (has, counts bool) {
	now := n.wall().Milliseconds()
	k, _ := n.data.find(name, now)
	g, forgot := n.ghosts[token]
	is, was := k.token == token, forgot && now <= g.until
	return is || was, is && k.counts || was && g.counts
}

// reads is what the process does with what it reads from a socket.
func (n *node) reads(r *request) {
	c := r.conn
	w := n.world
	switch r.kind {
	case asksHello:
		n.lastID++
		c.peer = redlock.Peer{ID: n.lastID, RunID: fmt.Sprintf("%s-%d", n.name, n.run), Uptime: n.uptime()}
		w.say("%s is connected to by %s: %+v", n.name, c.link.client.name, c.peer)
	case asksEnd:
		n.hangUp(c)
		w.say("%s sees that %s has closed connection %d", n.name, c.link.client.name, c.peer.ID)
		return
	case asksKill:
		r.err = nil
		if n.noKill > 0 {
			r.err = fmt.Errorf("%w: NOPERM", errors.ErrUnsupported)
		} else if i := slices.IndexFunc(n.sockets, func(o *conn) bool { return o.peer.ID == r.id }); i >= 0 {
			victim := n.sockets[i]
			w.judge.killed(n, c.link.client, victim.link.client)
			n.hangUp(victim)
			victim.reset()
		}
		w.trace.add(trKill, uint64(n.id), uint64(c.link.client.id), uint64(r.id))
		w.say("%s kills %s's connection %d: %v", n.name, c.link.client.name, r.id, r.err)
	case asksFlight:
		if !n.serves(r) {
			return
		}
	}
	c.answer(r)
}

// serves carries out a flight, and reports whether the answers go out.
func (n *node) serves(r *request) bool {
	w, c := n.world, r.conn
	d := w.dice.on(forFlight, uint64(c.link.client.id), uint64(n.id), c.link.flights)
	weather := &w.plan.Weather
	if w.calm {
		weather = &Weather{}
	}
	ops := arranged(r.ops)
	part := len(ops)
	switch {
	case d.chance(weather.Lost): // before it is read, or somewhere in it
		part = d.below(len(ops) + 1)
		w.count("lost")
	case d.chance(weather.Mute):
		w.count("mute")
	case d.chance(weather.Twice):
		w.count("twice")
		for i := range ops {
			if ops[i].Kind < redlock.OpInspect {
				n.does(c, &ops[i])
			}
		}
		fallthrough
	default:
		part = -1
	}
	for i := range ops {
		if i == part {
			break
		}
		n.does(c, &ops[i])
	}
	if part >= 0 {
		n.hangUp(c)
		c.reset()
		return false
	}
	if len(n.fails) > 0 && n.fails[0] == errReadOnly {
		r.last = true // go-redis gives such a connection up
	}
	return true
}

// does carries out one operation.
func (n *node) does(c *conn, op *redlock.Op) {
	w := n.world
	var refuse error
	if len(n.fails) > 0 {
		refuse = n.fails[0]
	}
	if w.plan.remembers() {
		n.remember(op)
	}
	if refuse == errLoading || refuse == errNoPerm {
		op.Reply = unread(op, refuse)
	} else {
		op.Reply = n.data.carryOut(op, n.wall(), !n.inQuarantine(), refuse)
		if n.world.plan.Terse && op.Kind == redlock.OpAcquire {
			op.Reply.Holder = ""
		}
	}
	if op.Kind == redlock.OpAcquire {
		w.owners[op.Token] = c.link.client
	}
	w.ops[op.Kind]++
	w.trace.op(n, c.link.client, op)
	w.judge.did(n, c, op)
}

// inQuarantine: a lock that the node has forgotten may still be held.
func (n *node) inQuarantine() bool {
	return n.forgot && n.world.now < n.lost+n.world.plan.MaxTTL
}

// hangUp ends a connection at the node's end.
func (n *node) hangUp(c *conn) {
	c.open, c.unread = false, nil
	n.sockets = slices.DeleteFunc(n.sockets, func(o *conn) bool { return o == c })
}

// goOn has the process read what has come meanwhile, one socket after the other.
func (n *node) goOn() {
	d := n.world.dice.on(forWaking, uint64(n.id), uint64(n.world.now))
	for _, c := range n.sockets {
		if len(c.unread) > 0 {
			n.world.after(d.between(0, 2*time.Millisecond), c.link.client.rank(rankDrain), true, c.drain)
		}
	}
}

// end ends the process. What was unread is gone; what was in its data stays there.
func (n *node) end(silent bool) {
	n.downs++
	n.up = false
	n.silent = n.silent || silent
	for _, c := range slices.Clone(n.sockets) {
		n.hangUp(c)
		if !n.silent {
			c.reset()
		}
	}
}

// begin starts a process, once whatever has ended it is over. forgotten: not all
// data of the one before are there.
func (n *node) begin(forgotten bool) {
	n.forgets = n.forgets || forgotten
	if n.downs--; n.downs > 0 {
		return
	}
	n.up, n.silent = true, false
	n.run++
	n.lastID = 0
	n.booted = n.wall()
	n.world.restarted = true
	if n.forgets {
		n.lost, n.forgot, n.forgets = n.world.now, true, false
	}
}

// wipe has the node forget everything.
func (n *node) wipe() { n.replace(newData()) }

// restore gives the node back the data that it had at a moment.
func (n *node) restore(then time.Duration) {
	old := n.data.clone()
	n.restored = true
	for len(n.past) > 0 && n.past[len(n.past)-1].at > then {
		p := n.past[len(n.past)-1]
		n.past = n.past[:len(n.past)-1]
		switch {
		case p.isKey && p.key == nil:
			delete(old.keys, p.name)
		case p.isKey:
			old.keys[p.name] = *p.key
		case p.counter == nil:
			delete(old.counters, p.name)
		default:
			old.counters[p.name] = *p.counter
		}
	}
	n.replace(old)
}

// replace puts other data in the place of a node's, which then has forgotten what
// they don't have.
func (n *node) replace(d data) {
	for name, k := range n.data.keys {
		if d.keys[name].token != k.token || d.keys[name].until < k.until {
			n.ghosts[k.token] = phantom{max(k.until, n.ghosts[k.token].until), k.counts || n.ghosts[k.token].counts}
		}
	}
	n.data = d
}

// remember keeps what an operation is about to change.
func (n *node) remember(op *redlock.Op) {
	if op.Kind == redlock.OpInspect {
		return
	}
	now := n.world.now
	c := change{at: now, name: op.Key, isKey: true}
	if k, ok := n.data.keys[op.Key]; ok {
		c.key = &k
	}
	n.past = append(n.past, c)
	if op.Counter != "" {
		c := change{at: now, name: op.Counter}
		if k, ok := n.data.counters[op.Counter]; ok {
			c.counter = &k
		}
		n.past = append(n.past, c)
	}
}
