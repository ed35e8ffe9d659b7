package sim

import (
	"container/heap"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/redlock"
)

// What draws are for. Each has its own dice.
const (
	forPlan uint64 = iota
	forFaults
	forRequest
	forReply
	forFlight
	forWaking
	forHealing
	forResume
	forWork
	forBackoff
	forStore
	forSkew
)

// Which of two events at one nanosecond comes first.
const (
	rankFault uint64 = iota
	rankArrive
	rankDrain
	rankReply
	rankLimit
	rankTimer
	rankWorker
	rankJudge
)

// world is one schedule under way. Everything in it runs in one bubble of
// testing/synctest and takes turns: the driver takes the next event from the
// agenda, lets it happen, and waits until nothing moves any more before it takes
// the next. Its time is the agenda's; that of the bubble stands still. So the order of what happens is
// that of the agenda, and the same each time.
type world struct {
	plan  Plan
	dice  dice
	start time.Time

	mu     sync.Mutex // guards all of the world while goroutines run
	now    time.Duration
	agenda agenda
	parked []*conn // whose lanes are about to put a flight together
	calm   bool    // no more faults

	nodes   []*node
	clients []*client // one per place; a client that has crashed is replaced
	workers int       // that are still at work

	afflictions []*func()     // what ends each fault; nil once it has
	over        time.Duration // when the last of those that have begun is over
	pending     int           // faults that have not begun; a script is played to its end
	restarted   bool          // some node was
	owners      map[redlock.Token]*client

	judge  *judge
	trace  trace
	counts map[string]int
	events int
	beside int  // flights that were sent while another was under way on the connection
	hung   bool // it does not come to its end
	ops    [redlock.OpRelease + 1]int
	says   []string
	story  []string
}

// mostEvents is far more than any schedule has that ends.
const mostEvents = 100_000

// Result is what became of a schedule.
type Result struct {
	Violations []string
	Trace      uint64 // a hash of everything that happened at nodes and to workers, in order
	Grants     int
	Ops        [redlock.OpRelease + 1]int // that nodes carried out, by kind
	Events     int
	Beside     int            // flights that were sent while another was under way on their connection
	Time       time.Duration  // of the world
	Faults     map[string]int // that happened, by kind
	Story      []string       // what became of a script's steps, and what went wrong
	Log        []string       // everything in words, if Plan.Verbose

	// If Plan.Recorded: what clients saw, and what the store had accepted.
	Record   []history.Event
	Accepted []history.Entry
}

// Run plays a schedule. The same plan gives the same result.
func Run(t *testing.T, p Plan) (r Result) {
	defer func() { // a bubble panics when goroutines are left in it (I9)
		if left := recover(); left != nil {
			r.Violations = append(r.Violations, fmt.Sprint(left))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(p)
		w.play()
		w.judge.second()
		r = w.result()
	})
	return r
}

func newWorld(p Plan) *world {
	w := &world{plan: p, dice: dice(mix(p.Seed)), start: time.Now(), counts: map[string]int{}, owners: map[redlock.Token]*client{}}
	w.judge = newJudge(w)
	for i := range p.Nodes {
		n := newNode(w, i)
		n.wallThen += w.skew(uint64(i))
		w.nodes = append(w.nodes, n)
	}
	for i := range p.Clients {
		w.clients = append(w.clients, newClient(w, i, 0))
	}
	for _, f := range p.Faults {
		w.planFault(f)
	}
	return w
}

// skew is how far off somebody's wall clock is from the beginning.
func (w *world) skew(whose uint64) time.Duration {
	d := w.dice.on(forSkew, whose)
	return pick(&d, -w.plan.Skew, w.plan.Skew, d.between(-w.plan.Skew, w.plan.Skew))
}

// play runs a schedule to its end.
func (w *world) play() {
	for _, c := range w.clients {
		c.start()
	}
	w.drive(func() bool { return w.workers == 0 && (w.plan.Script == nil || w.pending == 0) })
	if d := w.dice.on(forPlan, 2); d.chance(0.5) { // what goes wrong goes on for its time
		w.pass(max(0, w.over-w.now))
		w.drive(func() bool { return w.workers == 0 })
	}
	w.heal()
	w.epilogue()
}

// drive lets events happen until done, which is asked when nothing moves.
func (w *world) drive(done func() bool) {
	for {
		w.settle()
		for moved := false; !moved; {
			if done() {
				return
			}
			if w.hung {
				return
			}
			if len(w.agenda) == 0 || w.events > mostEvents {
				w.hung = true
				w.violates("it does not end: %d events, and %d to come", w.events, len(w.agenda))
				return
			}
			e := heap.Pop(&w.agenda).(*event)
			w.happen(e)
			moved = !e.quiet
		}
	}
}

// pass lets a span of time go by.
func (w *world) pass(d time.Duration) {
	end := w.now + d
	w.drive(func() bool { return len(w.agenda) == 0 || w.agenda[0].at > end })
	w.now = end
}

// happen lets one event happen.
func (w *world) happen(e *event) {
	if e.whose.isHalted() {
		e.whose.held = append(e.whose.held, e)
		return
	}
	if e.at > w.now {
		w.trace.flush()
	}
	w.now = e.at
	w.mu.Lock()
	w.events++
	e.do()
	w.mu.Unlock()
}

// settle returns when nothing moves. Lanes that are about to put a flight together
// wait until then, and do it at once: they do not interact.
func (w *world) settle() {
	for {
		synctest.Wait()
		if !w.gather() {
			return
		}
	}
}

// gather lets the lanes go on that are about to put a flight together, and reports
// whether there were any.
func (w *world) gather() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	still := w.parked[:0]
	some := false
	for _, c := range w.parked {
		if c.link.client.isHalted() {
			still = append(still, c)
			continue
		}
		some = true
		c.gathered <- struct{}{}
	}
	w.parked = still
	return some
}

// at plans something.
func (w *world) at(at time.Duration, rank uint64, quiet bool, do func()) {
	w.agenda.set(&event{at: at, rank: rank, quiet: quiet, do: do})
}

// after is at, from now.
func (w *world) after(d time.Duration, rank uint64, quiet bool, do func()) {
	w.at(w.now+d, rank, quiet, do)
}

// count notes that a fault has happened.
func (w *world) count(kind string) { w.counts[kind]++ }

// say adds to the log.
func (w *world) say(format string, args ...any) {
	if w.plan.Verbose {
		w.says = append(w.says, fmt.Sprintf("%v ", w.now)+fmt.Sprintf(format, args...))
	}
}

// tell adds to the story of a script.
func (w *world) tell(format string, args ...any) {
	if w.plan.Script != nil {
		w.story = append(w.story, fmt.Sprintf("%v ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
	w.say(format, args...)
}

// violates notes that something has happened that must not.
func (w *world) violates(format string, args ...any) {
	v := fmt.Sprintf(format, args...)
	w.judge.violations = append(w.judge.violations, fmt.Sprintf("at %v: %s", w.now, v))
	w.tell("VIOLATION %s", v)
}

func (w *world) result() Result {
	w.trace.flush()
	r := Result{
		Violations: w.judge.violations, Trace: w.trace.sum, Grants: len(w.judge.holds), Events: w.events, Beside: w.beside, Ops: w.ops,
		Time: w.now, Faults: w.counts, Story: w.story, Log: w.says,
	}
	if w.plan.Recorded {
		r.Record, r.Accepted = w.judge.recorded(), w.judge.store.Log()
	}
	return r
}
