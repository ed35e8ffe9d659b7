package sim

import (
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/redlock"
)

// judge knows the true time and what every node holds, and decides whether what
// clients were told is true. Its methods are called with world.mu held.
type judge struct {
	world      *world
	keys       map[string]*record
	byDigest   map[string]*hold
	byToken    map[redlock.Token]*hold
	releases   map[release]*conn // the latest on which it came
	holds      []*hold           // all
	store      history.Store
	appends    []history.Append
	violations []string
}

// record is what has become of one key.
type record struct {
	holds []*hold // that may not be over
}

// hold is a lease as its judge knows it.
type hold struct {
	client  *client
	lease   *redlock.Lease
	name    string
	token   redlock.Token
	digest  string
	fence   fence.Token
	number  int           // of all leases
	writes  int           // to the store
	timeout time.Duration // its view's NodeTimeout
	kept    bool          // it is renewed
	long    bool          // its holder wants it for longer than a TTL

	began time.Duration // its acquire was called
	from  time.Duration // its acquire returned
	left  time.Duration // what it was promised then
	until time.Duration // when that is over, by true time; later after extensions

	released time.Duration // Release was called
	lost     time.Duration // the loss was told
	outvoted bool          // it was lost because a majority did not hold it
	crashed  bool
}

// open reports whether its holder may still rely on it. A lease that was lost
// because its validity ended counts on to the end that was promised, in favour of
// a holder who has looked at Remaining only.
func (h *hold) open(now time.Duration) bool {
	return now < h.until && h.released == 0 && !h.outvoted
}

// onNodes reports whether nodes may still have it because nobody releases it: for all
// that its holder was promised by whichever clock has counted least, and for as long as
// a slow link may carry the release.
func (h *hold) onNodes(now time.Duration) bool {
	return h.released == 0 && now < h.until+h.client.jumpsSince(h.began)+h.client.world.carried()
}

// majority is the judge's own, so that a quorum that is counted wrongly is seen.
func majority(nodes int) int { return nodes/2 + 1 }

func newJudge(w *world) *judge {
	return &judge{world: w, keys: map[string]*record{}, byDigest: map[string]*hold{}, byToken: map[redlock.Token]*hold{}, releases: map[release]*conn{}}
}

func (j *judge) record(name string) *record {
	r := j.keys[name]
	if r == nil {
		r = &record{}
		j.keys[name] = r
	}
	return r
}

// granted judges a lease that an acquire has just returned.
func (j *judge) granted(h *hold) {
	w, p := j.world, &j.world.plan
	j.byDigest[h.digest], j.byToken[h.token] = h, h
	r := j.record(h.name)
	h.until = w.now + h.client.clock.real(h.left)
	w.trace.add(trGrant, uint64(h.client.id), hashOf(h.name), w.trace.token(h.token))
	w.say("%s holds %s for %v, fence %d, token %s", h.client.name, h.name, h.left, h.fence, h.digest)
	if h.left <= 0 {
		w.violates("%s holds nothing: its acquire of %s has succeeded, and its lease is over", h.client.name, h.name)
	}
	if p.exclusive() {
		j.alone(r, h)
		j.counted(h)
		j.watch(h)
	}
	r.holds = append(r.holds, h)
	j.holds = append(j.holds, h)
	h.number = len(j.holds)
	if p.Fenced && p.ordered() && p.Script == nil {
		j.visit(h)
	}
}

// alone: nobody else holds the key (I1), and the context of whoever did has ended,
// unless his process is halted.
func (j *judge) alone(r *record, h *hold) {
	w := j.world
	still := r.holds[:0]
	for _, o := range r.holds {
		if o.open(w.now) {
			w.violates("two hold %s: %s, and %s for %v more", h.name, h.client.name, o.client.name, o.until-w.now)
		}
		if o.released != 0 || o.lost != 0 || o.crashed {
			continue
		}
		still = append(still, o)
		if c := o.client; !c.wasHalted() {
			w.violates("%s holds %s, and %s's context has not ended", h.client.name, h.name, c.name)
		}
	}
	r.holds = still
}

// counted: a quorum of nodes whose grants count has the lease, or has extended it
// (I10, I2).
func (j *judge) counted(h *hold) {
	on, counts := j.on(h)
	if q := majority(len(j.world.nodes)); on < q {
		j.world.violates("%s holds %s by %d nodes of %d", h.client.name, h.name, on, len(j.world.nodes))
	} else if counts < q && !j.world.plan.Durable {
		j.world.violates("%s holds %s by %d nodes, %d of them in quarantine", h.client.name, h.name, on, on-counts)
	}
}

// on is how many nodes have a lease, those that have forgotten it included.
func (j *judge) on(h *hold) (on, counts int) {
	for _, n := range j.world.nodes {
		has, counted := n.has(prefix+h.name, h.token)
		if has {
			on++
			if counted {
				counts++
			}
		}
	}
	return on, counts
}

// watch looks at the nodes at the last moment of a lease: a quorum still has it
// (I2). It is looked at too whenever somebody takes it away, and when it is
// released.
func (j *judge) watch(h *hold) {
	until := h.until
	j.world.at(until-1, h.client.rank(rankJudge), true, func() {
		if h.until == until {
			j.stillOn(h)
			j.told(h)
		}
	})
}

// told: the context of a lease ends before its validity does, while the process runs.
func (j *judge) told(h *hold) {
	if h.released == 0 && !h.hasEnded() && !h.crashed && !h.client.wasHalted() {
		j.world.violates("%s's lease on %s is over, and its context has not ended", h.client.name, h.name)
	}
}

// hasEnded reports whether the holder has been told of the loss, and its context
// has ended.
func (h *hold) hasEnded() bool {
	select {
	case <-h.lease.Context().Done():
		return h.lost != 0
	default:
		return false
	}
}

func (j *judge) stillOn(h *hold) {
	w := j.world
	if !h.open(w.now) || !w.plan.exclusive() {
		return
	}
	if on, _ := j.on(h); on < majority(len(w.nodes)) {
		w.violates("%s holds %s for %v more, and %d nodes of %d have it", h.client.name, h.name, h.until-w.now, on, len(w.nodes))
	}
}

// extended judges an extension that has succeeded, or has not.
func (j *judge) extended(c *client, e redlock.ExtendEvent) {
	w := j.world
	w.trace.add(trExtend, uint64(c.id), hashOf(e.Key), class(e.Err))
	w.say("%s extends %s: %v left, %v", c.name, e.Key, e.Remaining, e.Err)
	h := j.byDigest[e.Token]
	if h == nil || e.Err != nil {
		return
	}
	if h.released != 0 || h.lost != 0 {
		w.violates("%s's lease on %s was extended after it had ended", c.name, h.name)
		return
	}
	h.until = max(h.until, w.now+c.clock.real(e.Remaining))
	if w.plan.exclusive() {
		j.counted(h)
		j.watch(h)
	}
}

// lost notes that a holder is told that he is none.
func (j *judge) lost(c *client, e redlock.LostEvent) {
	w := j.world
	w.trace.add(trLost, uint64(c.id), hashOf(e.Key))
	w.say("%s loses %s: %v", c.name, e.Key, e.Err)
	h := j.byDigest[e.Token]
	if h == nil {
		return
	}
	h.outvoted = errors.Is(e.Err, redlock.ErrLost) && strings.Contains(e.Err.Error(), "majority")
	h.lost = max(w.now, 1)
	if c.heeds == h && c.asleep {
		c.rest.at = w.now + 1
		w.agenda.set(&c.rest)
	}
}

// releasing notes the call of Release.
func (j *judge) releasing(h *hold) {
	if h.released == 0 {
		j.stillOn(h)
		h.released = max(j.world.now, 1)
	}
}

// closing notes that a Locker is closed, which releases what it holds.
func (j *judge) closing(c *client) {
	for _, h := range j.holds {
		if h.client == c {
			j.releasing(h)
		}
	}
}

// released judges a Release that said nil: a majority has deleted it (I8).
func (j *judge) released(h *hold) {
	on := 0
	for _, n := range j.world.nodes {
		if k, ok := n.data.find(prefix+h.name, n.wall().Milliseconds()); ok && k.token == h.token {
			on++
		}
	}
	if max := len(j.world.nodes) - majority(len(j.world.nodes)); on > max && j.world.plan.Keeping {
		j.world.violates("Release of %s said nil, and %d nodes of %d have it", h.name, on, len(j.world.nodes))
	}
}

// turned keeps what was promised by a clock right when its rate changes.
func (j *judge) turned(c *client, rate float64) {
	for _, r := range j.keys {
		for _, h := range r.holds {
			if h.client == c && h.until > j.world.now {
				left := float64(h.until - j.world.now)
				h.until = j.world.now + time.Duration(left*c.clock.rate/rate)
				j.watch(h)
			}
		}
	}
}

// crashed ends all that a process had.
func (j *judge) crashed(c *client) {
	for _, r := range j.keys {
		for _, h := range r.holds {
			if h.client == c {
				h.crashed = true
			}
		}
	}
}
