package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Step is one thing that a script has a client do.
type Step struct {
	At     time.Duration
	Client int
	Verb   string        // see verbs
	Key    string        // of the lock
	For    time.Duration // how long acquire tries, how long extend extends
}

// verbs are what a client can be told to do.
var verbs = map[string]func(c *client, s Step, h *hold){
	"try": func(c *client, s Step, _ *hold) {
		c.gets(s, func() (*redlock.Lease, error) { return c.locker.TryAcquire(context.Background(), s.Key) })
	},
	"acquire": func(c *client, s Step, _ *hold) {
		ctx, cancel := c.within(s.For)
		defer cancel()
		c.gets(s, func() (*redlock.Lease, error) { return c.locker.Acquire(ctx, s.Key) })
	},
	"keep": func(_ *client, _ Step, h *hold) { h.kept = true; h.lease.KeepAlive() },
	"extend": func(c *client, s Step, h *hold) {
		c.tells(s, h.lease.Extend(context.Background(), s.For))
	},
	"write": func(c *client, s Step, h *hold) {
		err := c.append(h)
		if ended := h.lease.Context().Err(); ended != nil {
			err = errors.Join(err, context.Cause(h.lease.Context()))
		}
		c.tells(s, err)
	},
	"release": func(c *client, s Step, h *hold) {
		c.releasing(h)
		c.tells(s, h.lease.Release(context.Background()))
	},
}

// follow does what the script says.
func (c *client) follow() {
	has := map[string]*hold{}
	c.has = has
	for _, s := range c.world.plan.Script {
		if s.Client != c.place {
			continue
		}
		c.sleep(s.At - c.world.clockNow())
		h := has[s.Key]
		switch {
		case c.isGone():
			return
		case h == nil && s.Verb != "try" && s.Verb != "acquire":
			c.tells(s, errors.New("it has none"))
		default:
			verbs[s.Verb](c, s, h)
		}
	}
}

// gets is a step that asks for a lease.
func (c *client) gets(s Step, get func() (*redlock.Lease, error)) {
	began := c.world.clockNow()
	lease, err := get()
	if err == nil {
		c.has[s.Key] = c.won(lease, s.Key, began, 0)
	}
	c.tells(s, err)
}

// append is a write to the store that the key guards.
func (c *client) append(h *hold) error {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.judge.append(h) != nil {
		return errors.New("refused, a newer lease has been there")
	}
	return nil
}

// tells puts what has become of a step into the story.
func (c *client) tells(s Step, err error) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.gone {
		return
	}
	became := "ok"
	switch {
	case err == nil:
	case class(err) != classOther:
		for _, name := range classes {
			if errors.Is(err, name) {
				became = name.Error()
				break
			}
		}
		if text := err.Error(); strings.HasPrefix(text, "refused") {
			became, _, _ = strings.Cut(text, "\n")
			became += "; " + redlock.ErrLost.Error()
		}
	default:
		became = err.Error()
	}
	w.tell("%s: %s %s: %s", c.name, s.Verb, s.Key, became)
}
