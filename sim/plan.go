package sim

import (
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Plan is a schedule before it is run: who takes part, what is assumed of them, and
// what goes wrong. Together with the seed, from which everything else is drawn, it
// decides on all that happens.
type Plan struct {
	Seed                 uint64
	Nodes, Clients, Keys int

	// Timely: clocks run within the drift and no node's is stepped forward.
	// Keeping: nodes forget nothing but in restarts of nodes that are not Durable.
	// Only with both are leases judged; fences need only the second.
	Timely, Keeping bool

	// Apart: each client is much nearer to one node than to the others, and every way
	// takes as long each time.
	Apart bool

	// Terse: nodes do not say who has the key instead, like servers before 7.0.
	Terse bool

	Fenced, Durable      bool
	TTL, MaxTTL, MaxHold time.Duration
	Timeout              time.Duration // Config.NodeTimeout
	Skew                 time.Duration // how far wall clocks are off from the beginning, at most

	Acts   int           // how many leases each client asks for, at most
	Think  time.Duration // how long it rests between them, on average
	Length time.Duration // when it begins no more
	Long   float64       // how many of them it keeps for longer than a TTL

	Weather Weather
	Faults  []Fault
	Script  []Step // what clients do instead

	// Backoff is Config.Backoff; nil means that the seed decides.
	Backoff func(n int) time.Duration

	Verbose  bool // keep a log in words
	Recorded bool // keep a record for other judges
}

// Weather is what happens to any request now and then.
type Weather struct {
	Delay   time.Duration // each way, at most
	Slow    float64       // how often it is longer
	Slowest time.Duration // and up to how long
	Lost    float64       // how often a connection ends in or before a flight
	Mute    float64       // … and after it, before the answer
	Twice   float64       // how often a flight is carried out twice
}

// beat is what things take: a TTL, but not a long one. With that, what is left on a
// node stays there to be found.
func (p *Plan) beat() time.Duration {
	if p.TTL > 3*time.Second {
		return 700 * time.Millisecond
	}
	return p.TTL
}

// exclusive: no two may hold a key at once.
func (p *Plan) exclusive() bool { return p.Timely && p.Keeping }

// ordered: fences rise.
func (p *Plan) ordered() bool { return p.Keeping }

// remembers: nodes will be given back data that they had before.
func (p *Plan) remembers() bool {
	for _, f := range p.Faults {
		if f.Kind == "stale" {
			return true
		}
	}
	return false
}

// clockError is how far off a wall clock may be in all. Where nodes forget fences,
// clocks must be about right for the next ones to be larger: twice their error, and
// the second that a fence may be ahead, are less than the quarantine.
func (p *Plan) clockError() time.Duration {
	if p.Fenced && !p.Durable {
		return 1450 * time.Millisecond
	}
	return 8 * time.Second
}

const prefix = "p:"

func (p *Plan) config() redlock.Config {
	return redlock.Config{
		TTL: p.TTL, MaxTTL: p.MaxTTL, MaxHold: p.MaxHold, NodeTimeout: p.Timeout,
		Fenced: p.Fenced, FenceTTL: max(61*time.Second, 10*p.MaxTTL), DurableNodes: p.Durable, KeyPrefix: prefix,
	}
}

// nodeTimeout is the default that goes with a TTL.
func (p *Plan) nodeTimeout(ttl time.Duration) time.Duration {
	if p.Timeout != 0 {
		return p.Timeout
	}
	return min(50*time.Millisecond, ttl/5)
}

// limit is how long an answer is waited for before the connection is given up.
func (p *Plan) limit() time.Duration {
	return max(min(p.MaxTTL, 5*time.Second), 2*p.nodeTimeout(p.MaxTTL))
}

// Draw is the plan for a seed. Each has its own mix of faults, and its own
// intensity of each: what never happens together with something else hides what
// only happens without it.
func Draw(seed uint64) Plan {
	d := dice(mix(seed)).on(forPlan)
	p := Plan{
		Seed:    seed,
		Nodes:   pick(&d, 1, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5, 7),
		Clients: pick(&d, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5),
		Keys:    pick(&d, 1, 1, 2),
		Timely:  d.chance(0.75),
		Keeping: d.chance(0.93),
		Fenced:  d.chance(0.8),
		Durable: d.chance(0.35),
		TTL:     pick(&d, 211*time.Millisecond, 211*time.Millisecond, 503*time.Millisecond, 1003700*time.Microsecond, 2503*time.Millisecond, 20007*time.Millisecond),
		Acts:    1 + d.below(4),
		Think:   d.about(100*time.Microsecond, 300*time.Millisecond),
	}
	// With the last, the allowance for drift makes just a second: what rounding to
	// seconds leaves is least.
	p.MaxTTL = max(p.TTL, pick(&d, p.TTL, p.TTL+d.between(0, p.TTL/2), p.TTL+d.between(0, 2*p.TTL), 987*time.Millisecond))
	if d.chance(0.2) {
		p.MaxHold = d.between(p.TTL, 3*p.TTL)
	}
	if d.chance(0.2) {
		p.Timeout = d.between(p.TTL/20, p.TTL/5)
	}
	p.Skew = pick(&d, 0, p.clockError()/2, d.about(time.Microsecond, p.clockError()/2))
	p.Long = pick(&d, 0.03, 0.2, 0.7)
	p.Length = d.about(p.beat(), 9*time.Second)
	p.Weather = drawWeather(&d, p.nodeTimeout(p.TTL))
	p.Faults = drawFaults(&p)
	return p
}

func drawWeather(d *dice, timeout time.Duration) Weather {
	w := Weather{Delay: d.about(200*time.Microsecond, timeout/3)}
	now := func(most float64) float64 {
		if d.chance(0.6) {
			return 0
		}
		return most * d.share()
	}
	w.Slow = now(0.2)
	w.Slowest = pick(d, timeout, 2*timeout, 20*timeout)
	w.Lost, w.Mute, w.Twice = now(0.1), now(0.1), now(0.2)
	return w
}
