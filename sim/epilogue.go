package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// heal ends all faults.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say("all is well again")
	w.calm = true
	for _, over := range w.afflictions {
		w.relieve(over)
	}
}

// epilogue checks what holds once everything is well: nothing is left on nodes,
// a free key can be had at once, and Close leaves nothing.
func (w *world) epilogue() {
	p := &w.plan
	wait := p.limit() + 2*dialTimeout + 300*time.Millisecond
	if !p.Timely { // the limit of a call is set by a clock that may run at half its rate then
		wait += p.limit()
	}
	if w.counts["nokill"] > 0 { // then releases are repeated until nothing old can come any more
		wait += 2 * p.MaxTTL // an extension may come at the key's last moment
	}
	w.pass(wait)
	w.leftovers("after all was released")
	if d := w.dice.on(forPlan, 1); d.chance(0.3) {
		w.liveness(d.chance(0.4))
	}
	w.close()
	w.pass(w.carried())
	w.leftovers("after all was closed")
	w.connections()
}

// carried is how long what was sent may be under way when all is well.
func (w *world) carried() time.Duration { return 10*time.Millisecond + w.plan.Weather.Slowest }

// liveness: everybody gets what nobody has (I7).
func (w *world) liveness(together bool) {
	// An idle lane finds out that its connection has ended when it asks whether the
	// node is there.
	const idlePing = 5 * time.Second
	wait := idlePing + 2*dialTimeout
	if w.restarted && !w.plan.Durable {
		wait += max(5*time.Second, w.plan.MaxTTL*102/100+2*time.Second)
	}
	w.pass(wait)
	for i, c := range w.clients {
		if !c.gone {
			w.alone(c, keyName(7)+string(rune('a'+i)), true)
			w.alone(c, keyName(0), false) // a process that has crashed may have left it
		}
	}
	if together {
		w.together()
	}
}

// call runs something of a client's library to its end.
func (w *world) call(do func()) {
	done := false
	go func() {
		do()
		w.mu.Lock()
		defer w.mu.Unlock()
		done = true
	}()
	w.drive(func() bool { return done })
}

// alone: a key that nobody has is had in one attempt (I7).
func (w *world) alone(c *client, name string, must bool) {
	w.call(func() {
		began := w.clockNow()
		lease, err := c.locker.TryAcquire(context.Background(), name)
		switch {
		case err != nil && !must:
			return
		case err != nil:
			c.violates("all is well, and a free key cannot be had: %v", err)
			return
		}
		h := c.won(lease, name, began, 0)
		c.releasing(h)
		if err := lease.Release(context.Background()); err != nil {
			c.violates("all is well, and a lease cannot be released: %v", err)
		}
	})
}

// all runs something for every client at once, to its end.
func (w *world) all(do func(c *client)) {
	var there []*client
	for _, c := range w.clients {
		if !c.gone {
			there = append(there, c)
		}
	}
	left := len(there)
	for _, c := range there {
		go func() {
			do(c)
			w.mu.Lock()
			defer w.mu.Unlock()
			left--
		}()
	}
	w.drive(func() bool { return left == 0 })
}

// together: of those who want one key at once each gets it (I7).
func (w *world) together() {
	w.all(func(c *client) {
		ctx, cancel := c.within(20 * time.Second)
		defer cancel()
		name := keyName(8)
		began := w.clockNow()
		lease, err := c.locker.Acquire(ctx, name)
		if err != nil {
			c.violates("all is well, and a contended key cannot be had in 20 s: %v", err)
			return
		}
		h := c.won(lease, name, began, 0)
		c.sleep(time.Millisecond)
		c.releasing(h)
		lease.Release(context.Background())
	})
}

// close closes all Lockers.
func (w *world) close() {
	w.all(func(c *client) {
		w.mu.Lock()
		w.judge.closing(c)
		w.mu.Unlock()
		if err := c.close(20 * time.Second); err != nil {
			c.violates("Close: %v", err)
		}
		if _, err := c.locker.TryAcquire(context.Background(), keyName(9)); !errors.Is(err, redlock.ErrClosed) {
			c.violates("acquire after Close: %v", err)
		}
	})
}

// leftovers: what is on the nodes is of processes that have crashed, or was given
// back by a restore, or is held by somebody who will not release it (I6). Where a clock was set back keys live longer than their
// clients can know: a release that could not be sent is owed for a TTL only.
func (w *world) leftovers(when string) {
	for _, n := range w.nodes {
		if n.restored || n.setBack {
			continue
		}
		for name, k := range n.data.keys {
			if n.wall().Milliseconds() > k.until {
				continue
			}
			h := w.judge.byToken[k.token]
			held := h != nil && h.onNodes(w.now)
			if o := w.owners[k.token]; o == nil || !o.gone && !held {
				w.violates("%s has %s with token %s %s", n.name, name, k.token, when)
			}
		}
	}
}

// connections: nothing of a Locker that was closed is left (I9). That no goroutine
// is, the bubble sees to.
func (w *world) connections() {
	for _, n := range w.nodes {
		for _, s := range n.sockets {
			if !s.link.client.gone {
				w.violates("%s has a connection of %s after Close", n.name, s.link.client.name)
			}
		}
	}
	for _, e := range slices.Clone(w.agenda) {
		if e.timer && e.whose != nil && !e.whose.gone {
			w.violates("a timer of %s is set after Close", e.whose.name)
		}
	}
}
