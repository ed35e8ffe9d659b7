package sim

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
)

// visit has a holder use the store that its key guards: claim it, before it would
// read anything, and append to it once or twice, each some time after the other and
// whatever has become of the lease by then.
func (j *judge) visit(h *hold) {
	w := j.world
	d := w.dice.on(forStore, hashOf(h.name), uint64(h.client.id), uint64(h.from))
	if d.chance(0.3) {
		return
	}
	visits := 2 + d.below(2)
	var next func()
	plan := func() {
		lag := d.about(20*time.Microsecond, w.plan.beat()*3/2)
		w.at(w.now+lag, h.client.rank(rankJudge), true, next)
	}
	next = func() {
		if j.append(h) != nil {
			w.count("stale write")
			return
		}
		if visits--; visits > 0 {
			plan()
		}
	}
	plan()
}

// append is one append under a lease.
func (j *judge) append(h *hold) error {
	w := j.world
	h.writes++
	a := history.Append{
		Entry:  history.Entry{Key: h.name, Fence: h.fence, Element: strconv.Itoa(h.number) + "." + strconv.Itoa(h.writes)},
		Holder: h.client.id, Lease: h.number, Called: w.now, Returned: w.now, Outcome: history.OK,
	}
	err := j.store.Append(a.Key, a.Fence, a.Element)
	if err != nil {
		a.Outcome = history.Fail
		if w.plan.exclusive() && h.open(w.now) && !h.crashed {
			w.violates("%s holds %s, and its fence is refused", h.client.name, h.name)
		}
	}
	j.appends = append(j.appends, a)
	return err
}

// second is the opinion of a judge who knows only what clients were told.
func (j *judge) second() {
	p := &j.world.plan
	run := history.Run{Appends: j.appends, TimingBroken: !p.exclusive()}
	if len(j.appends) > 0 {
		run.Log = j.store.Log()
	}
	for _, h := range j.holds {
		record := history.Hold{
			Key: h.name, Holder: h.client.id, Called: h.began, Acquired: h.from, Until: h.until, Released: h.released, Lost: h.lost,
		}
		if p.ordered() {
			record.Fence = h.fence
		}
		run.Holds = append(run.Holds, record)
	}
	for _, fault := range run.Judge().Faults() {
		j.world.violates("%s", fault)
	}
}
