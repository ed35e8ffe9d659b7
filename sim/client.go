package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// client is one process that locks: a real Locker on links to all nodes, with a
// clock of its own, and one worker.
type client struct {
	world  *world
	place  int
	id     int // unlike that of any other process
	name   string
	clock  *processClock
	links  []*link
	locker *redlock.Locker

	born      time.Duration
	gone      bool // crashed: nothing it does is seen by anybody
	paused    int
	suspended int
	since     time.Duration // when it was halted
	rests     time.Duration // when it was suspended
	away      time.Duration // how long it has been halted in all
	jumps     []jump        // all, in order
	resumed   time.Duration // when it was halted last, or its clock stepped
	held      []*event      // what has come meanwhile

	// The worker.
	rest   event // the end of its sleep
	asleep bool
	heeds  *hold            // the loss of which wakes it
	woken  chan struct{}    // capacity 1
	has    map[string]*hold // in a script, by key
}

func newClient(w *world, place, life int) *client {
	c := &client{
		world: w, born: w.now, place: place, id: life*maxClients + place, name: fmt.Sprint("c", place+1), woken: make(chan struct{}, 1),
	}
	if life > 0 {
		c.name += fmt.Sprint("'", life)
	}
	c.clock = newProcessClock(c)
	c.clock.Step(w.now + w.skew(100+uint64(place))) // it counts from the start of the world
	c.rest = event{whose: c, timer: true, rank: c.rank(rankWorker), do: c.wake}
	for _, n := range w.nodes {
		c.links = append(c.links, &link{client: c, node: n})
	}
	return c
}

const maxClients = 8

// jump is time that one of a client's clocks has counted and another has not: it was
// suspended, or its wall clock was stepped ahead.
type jump struct{ at, by time.Duration }

func (c *client) jumpsSince(began time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, j := range c.jumps {
		if j.at >= began {
			sum += j.by
		}
	}
	return sum
}

// rank orders the events of one nanosecond.
func (c *client) rank(kind uint64) uint64 { return kind<<32 | uint64(c.id)<<8 }

// start starts the process.
func (c *client) start() {
	w := c.world
	nodes := make([]redlock.Node, len(c.links))
	for i, l := range c.links {
		nodes[i] = l
	}
	cfg := w.plan.config()
	cfg.Clock = c.clock
	cfg.Trace = c.hooks()
	if cfg.Backoff = w.plan.Backoff; cfg.Backoff == nil {
		tries := uint64(0)
		cfg.Backoff = func(n int) time.Duration {
			tries++
			d := w.dice.on(forBackoff, uint64(c.id), tries)
			return d.between(time.Microsecond, min(4*time.Millisecond<<min(n, 6), 250*time.Millisecond))
		}
	}
	locker, err := redlock.New(nodes, cfg)
	if err != nil {
		panic(err) // a plan that Draw cannot make
	}
	c.locker = locker
	w.mu.Lock()
	w.workers++
	w.mu.Unlock()
	go func() {
		c.work()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.workers--
	}()
}

// sleep waits for d by the process's clock, or until it has crashed.
func (c *client) sleep(d time.Duration) { c.sleepUnlessLost(d, nil) }

// sleepUnlessLost is sleep that ends early when h is lost.
func (c *client) sleepUnlessLost(d time.Duration, h *hold) {
	w := c.world
	w.mu.Lock()
	if c.gone {
		w.mu.Unlock()
		return
	}
	c.rest.at = w.now + max(1, c.clock.real(d))
	if h != nil && h.lost != 0 {
		c.rest.at = w.now + 1
	}
	w.agenda.set(&c.rest)
	c.asleep, c.heeds = true, h
	w.mu.Unlock()
	<-c.woken
}

// wake ends the worker's sleep. world.mu is held.
func (c *client) wake() {
	if c.asleep {
		c.asleep, c.heeds = false, nil
		c.woken <- struct{}{}
	}
}

// within is a context that ends after d by the process's clock.
func (c *client) within(d time.Duration) (context.Context, func()) {
	w := c.world
	ctx, cancel := context.WithCancelCause(context.Background())
	end := &event{whose: c, timer: true, rank: c.rank(rankWorker) + 1, do: func() { cancel(context.DeadlineExceeded) }}
	w.mu.Lock()
	end.at = w.now + max(1, c.clock.real(d))
	w.agenda.set(end)
	w.mu.Unlock()
	return ctx, func() {
		w.mu.Lock()
		w.agenda.drop(end)
		c.unhold(end)
		w.mu.Unlock()
		cancel(nil)
	}
}

// crash ends the process: its connections end, and nothing is released. What is
// left of it here is closed unseen. world.mu is held.
func (c *client) crash() {
	w := c.world
	for _, l := range c.links {
		for _, s := range l.node.sockets {
			if s.link == l {
				l.send(&request{conn: s, kind: asksEnd})
			}
		}
	}
	c.gone = true
	w.judge.crashed(c)
	for _, l := range c.links {
		if l.last != nil {
			l.last.fail(errHungUp)
		}
	}
	for _, e := range c.held {
		e.at = max(e.at, w.now+1)
		w.agenda.set(e)
	}
	c.held = nil
	w.agenda.drop(&c.rest)
	c.wake()
	w.workers++
	go func() {
		c.close(0)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.workers--
	}()
}

// replace starts another process in the place of one that has crashed, unless all
// is over.
func (c *client) replace() {
	w := c.world
	if w.calm {
		return
	}
	next := newClient(w, c.place, c.id/maxClients+1)
	w.clients[c.place] = next
	w.workers++
	go func() {
		next.start()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.workers--
	}()
}

// turn sets the clock's rate, and with it the moment at which what was promised by
// it is over, and those at which timers fire: they go by the same clock.
func (c *client) turn(rate float64) {
	w := c.world
	w.judge.turned(c, rate)
	if c.suspended > 0 {
		c.oversleep()
	}
	for _, e := range slices.Clone(w.agenda) {
		if e.timer && e.whose == c {
			left := float64(e.at-w.now) * c.clock.rate / rate
			e.at = w.now + max(1, time.Duration(math.Ceil(left)))
			w.agenda.set(e)
		}
	}
	c.clock.rate = rate
	if c.suspended == 0 {
		c.clock.SetRate(rate)
	}
}

// close closes the Locker, and waits for that as long as it is told, by the
// process's clock.
func (c *client) close(d time.Duration) error {
	ctx, cancel := c.within(d)
	defer cancel()
	return c.locker.Close(ctx)
}

// hooks tell the judge what the library tells its user.
func (c *client) hooks() *redlock.Trace {
	w := c.world
	seen := func(f func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !c.gone {
			f()
		}
	}
	return &redlock.Trace{
		Lost:     func(e redlock.LostEvent) { seen(func() { w.judge.lost(c, e) }) },
		Extended: func(e redlock.ExtendEvent) { seen(func() { w.judge.extended(c, e) }) },
	}
}
