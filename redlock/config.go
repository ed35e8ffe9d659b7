package redlock

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

const (
	maxNodes  = 15
	maxKeyLen = 1024 // bytes, prefix included
	fenceTTLs = 10   // FenceTTL is at least so many MaxTTLs, and a minute
)

// Config holds a Locker's settings. The zero value is a good start.
type Config struct {
	// TTL is how long the nodes keep a key that nobody extends, and so how
	// long a crashed holder blocks others. 0 means 10 s. Ten times the 99th
	// percentile of the work under the lock is a start; longer work extends or
	// renews.
	TTL time.Duration

	// NodeTimeout is how long a node's answer is waited for. 0 means the
	// smaller of 50 ms and TTL/5; more than TTL/4 is refused. With Fenced it has to
	// cover two round trips: nodes whose counters disagree are asked a second time
	// within it.
	NodeTimeout time.Duration

	// MaxTTL is the largest TTL that any client of these nodes may use; all
	// clients must agree on it. 0 means 30 s. A larger TTL is refused.
	MaxTTL time.Duration

	// MaxHold ends the renewals of a kept-alive lease this long after it was
	// acquired, so that work which hangs does not hold its lock for ever. The
	// lease then runs out. 0 means no limit.
	MaxHold time.Duration

	// Drift bounds how differently nodes and this client count a TTL. It is
	// taken off every validity.
	Drift clock.Drift

	// Backoff says how long Acquire waits after its nth attempt in a row that
	// failed, counted from 0. While a lock passes from holder to holder n has a
	// bound, which sinks from 6 to 2 as the caller is passed over, so that all get
	// their turn. nil means FullJitter(2ms, 250ms). It may be called concurrently;
	// a negative result counts as 0.
	Backoff func(n int) time.Duration

	// Fenced has every lease come with a fence, [Lease.Fence]: a number that is
	// larger than that of any lease on the key before. It costs the nodes a script
	// instead of a SET, and a second key for each key that was ever locked. All
	// clients whose writes the same resource checks must have it set.
	Fenced bool

	// FenceTTL is how long a node remembers the fence of a key that nobody
	// locks any more. 0 means the larger of 24 h and ten times MaxTTL; less than
	// ten times MaxTTL, or than a minute, is refused.
	FenceTTL time.Duration

	// DurableNodes is the operator's word that the nodes keep every key that
	// they have granted through any restart: appendonly yes, appendfsync always,
	// no-appendfsync-on-rewrite no, and disks that do not lie. A restarted node
	// then votes at once. Otherwise what it grants does not count until every lock
	// that it may have forgotten has ended, MaxTTL and about a second later, and
	// not for at least 5 s where there are fences.
	DurableNodes bool

	// AllowUnidentified has nodes vote that do not say what they are, because
	// INFO is not permitted or a proxy stands before them. Restarts, replicas and
	// two names for one server then go unnoticed.
	AllowUnidentified bool

	// KeyPrefix is put before every key on the nodes.
	KeyPrefix string

	// Clock is where time comes from. nil means clock.System.
	Clock clock.Clock

	// Trace is told what happens. nil means nobody is.
	Trace *Trace
}

// FullJitter is a back-off that grows from first to limit, doubling each time,
// and draws each wait evenly from zero to there, so that rivals who fail
// together do not try again together.
func FullJitter(first, limit time.Duration) func(n int) time.Duration {
	first, limit = max(first, 1), max(limit, 1)
	return func(n int) time.Duration {
		ceiling := limit
		if n < 62 && first <= limit>>n {
			ceiling = first << n
		}
		return rand.N(ceiling) + 1
	}
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.TTL == 0 {
		c.TTL = 10 * time.Second
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = 30 * time.Second
	}
	if c.FenceTTL == 0 {
		c.FenceTTL = max(24*time.Hour, fenceTTLs*c.MaxTTL)
	}
	if c.Backoff == nil {
		c.Backoff = FullJitter(2*time.Millisecond, 250*time.Millisecond)
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Trace == nil {
		c.Trace = &Trace{}
	}
	return c
}

// validate says what is wrong with a Config, defaults filled in, naming each
// field and what would be right.
func (c Config) validate() error {
	var errs []error
	if err := c.checkTTL("Config.TTL", c.TTL); err != nil {
		errs = append(errs, err)
	} else if _, err := c.nodeTimeout(c.TTL); err != nil {
		errs = append(errs, err)
	}
	if c.MaxHold < 0 {
		errs = append(errs, invalid("Config.MaxHold is %v: want 0 for no limit, or more", c.MaxHold))
	}
	if least := max(time.Minute, fenceTTLs*c.MaxTTL); c.Fenced && c.FenceTTL < least {
		errs = append(errs, invalid("Config.FenceTTL is %v: want at least %d times Config.MaxTTL, and a minute, %v here, so that no fence is forgotten while it matters", c.FenceTTL, fenceTTLs, least))
	}
	if err := c.Drift.Validate(); err != nil {
		errs = append(errs, invalid("Config.%w", err))
	}
	if len(c.KeyPrefix) >= maxKeyLen {
		errs = append(errs, invalid("Config.KeyPrefix has %d bytes: with a key after it, at most %d fit", len(c.KeyPrefix), maxKeyLen-1))
	}
	return errors.Join(errs...)
}

// checkTTL says whether ttl may be asked of the nodes. name is what the
// caller calls it.
func (c Config) checkTTL(name string, ttl time.Duration) error {
	switch {
	case ttl <= 0:
		return invalid("%s is %v: a lock without an expiry would never end, want 1ms to %v", name, ttl, c.MaxTTL)
	case ttl < time.Millisecond:
		return invalid("%s is %v: nodes count whole milliseconds, want 1ms to %v", name, ttl, c.MaxTTL)
	case c.MaxTTL < time.Millisecond || c.MaxTTL > maxTTLLimit:
		return invalid("Config.MaxTTL is %v: want 1ms to %v", c.MaxTTL, maxTTLLimit)
	case ttl > c.MaxTTL:
		return invalid("%s is %v: Config.MaxTTL allows at most %v", name, ttl, c.MaxTTL)
	case c.Drift.Validate() == nil && validity(ttl, 0, c.Drift) <= 0:
		return invalid("%s is %v: the allowance for clock drift, %v, would use it up", name, ttl, c.Drift.Over(ttl))
	}
	return nil
}

// maxTTLLimit keeps sums of durations far from overflow.
const maxTTLLimit = 365 * 24 * time.Hour

// nodeTimeout is the NodeTimeout that goes with ttl.
func (c Config) nodeTimeout(ttl time.Duration) (time.Duration, error) {
	switch {
	case c.NodeTimeout == 0:
		timeout := min(50*time.Millisecond, ttl/5)
		if validity(ttl, timeout, c.Drift) <= notice(ttl) {
			return 0, invalid("a TTL of %v leaves no validity once nodes have answered, with an allowance for clock drift of %v: want a longer TTL", ttl, c.Drift.Over(ttl))
		}
		return timeout, nil
	case c.NodeTimeout < 0:
		return 0, invalid("Config.NodeTimeout is %v: want 0 for the default, or up to a quarter of the TTL, %v", c.NodeTimeout, ttl/4)
	case c.NodeTimeout > ttl/4:
		return 0, invalid("Config.NodeTimeout is %v: want at most a quarter of the TTL %v, %v, so that a slow node leaves some validity", c.NodeTimeout, ttl, ttl/4)
	case validity(ttl, c.NodeTimeout, c.Drift) <= notice(ttl):
		return 0, invalid("Config.NodeTimeout is %v: with a TTL of %v and an allowance for clock drift of %v, no validity would be left", c.NodeTimeout, ttl, c.Drift.Over(ttl))
	}
	return c.NodeTimeout, nil
}

// checkKey says whether key may be locked.
func (c Config) checkKey(key string) error {
	switch n := len(c.KeyPrefix) + len(key); {
	case key == "":
		return invalid("the key is empty: name what is locked")
	case n > maxKeyLen:
		return invalid("the key has %d bytes with its prefix: at most %d are allowed", n, maxKeyLen)
	case c.Fenced:
		return checkFenced(c.KeyPrefix + key)
	}
	return nil
}

// validity is how long a lease may still be relied on, elapsed after the
// moment before its first request was sent. Every node's timer started later
// than that and may run fast by the drift bound, so the whole TTL, less the
// bound, counts from there.
func validity(ttl, elapsed time.Duration, d clock.Drift) time.Duration {
	return ttl - elapsed - d.Over(ttl)
}

// checkNodes says whether nodes may vote together.
func checkNodes(nodes []Node) error {
	if len(nodes) == 0 {
		return invalid("there are no nodes: want 1 to %d, best 3 or 5", maxNodes)
	}
	if len(nodes) > maxNodes {
		return invalid("there are %d nodes: want 1 to %d, best 3 or 5", len(nodes), maxNodes)
	}
	seen := make(map[string]int, len(nodes))
	for i, n := range nodes {
		if n == nil {
			return invalid("node %d of %d is nil: want one made by Redis or Dial", i+1, len(nodes))
		}
		if j, dup := seen[n.String()]; dup {
			return invalid("nodes %d and %d are both %s: each node has one vote, and two names for one server make a majority of nothing", j+1, i+1, n)
		}
		seen[n.String()] = i
	}
	return nil
}

// ceilMillis is d in whole milliseconds, rounded up: what is asked of a node
// is never less than what is believed.
func ceilMillis(d time.Duration) int64 {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 && ms < math.MaxInt64 {
		ms++
	}
	return int64(ms)
}
