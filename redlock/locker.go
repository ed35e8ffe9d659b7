package redlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// Locker acquires locks on a fixed set of nodes. It is made once per process
// and set of nodes, used concurrently, and closed at the end.
type Locker struct {
	*core
	ttl         time.Duration
	nodeTimeout time.Duration
}

// core is what all views of a Locker share.
type core struct {
	cfg     Config
	clock   clock.Clock
	trace   *Trace
	lanes   []*lane
	left    []error // per lane: what may be left on its node, known once its goroutine has ended
	line    line
	keeper  *keeper
	waiters sync.Pool // of *waiter
	roll    roll

	group errgroup.Group // every goroutine of the Locker; Close waits for it
	cut   context.CancelCauseFunc
	ready chan struct{} // closed when a quorum of lanes is connected, or can't be at first
	lifetime

	mu  sync.Mutex // guards what follows
	met quorum.Ballot
}

// New returns a Locker on nodes, which must be the same for all clients that
// exclude each other. One node is a lock on that node alone, an even number
// tolerates no more failures than the odd one below it, and 3 or 5 are usual.
//
// New connects in the background. It does not fail because nodes are down, or may
// not vote: a Locker made during an outage works when it is over, and one made when
// all nodes have just been started, when they are out of quarantine. It returns
// ErrInvalid for settings that cannot work.
func New(nodes []Node, cfg Config) (*Locker, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(checkNodes(nodes), cfg.validate()); err != nil {
		return nil, err
	}
	// The Locker's own life: it ends with Close, not with any caller's context.
	ctx, cut := context.WithCancelCause(context.Background())
	c := &core{
		cfg:      cfg,
		clock:    cfg.Clock,
		trace:    cfg.Trace,
		line:     line{spots: make(map[string]*spot), rows: make(map[string]row)},
		left:     make([]error, len(nodes)),
		keeper:   newKeeper(cfg.Clock),
		cut:      cut,
		ready:    make(chan struct{}),
		lifetime: newLifetime(),
		met:      quorum.NewBallot(len(nodes)),
		roll:     roll{run: make([]string, len(nodes))},
	}
	c.waiters.New = func() any { return newWaiter(c.clock) }
	nodeTimeout, _ := cfg.nodeTimeout(cfg.TTL) // validated above
	times := laneTimes{
		late:  nodeTimeout,
		stall: max(2*nodeTimeout, min(250*time.Millisecond, cfg.TTL/10)),
		limit: max(min(cfg.MaxTTL, 5*time.Second), 2*nodeTimeout),
		drift: cfg.Drift,
	}
	for i, n := range nodes {
		l := newLane(n, c.clock, times, newVoter(cfg))
		l.changed = c.trace.nodeChanged
		l.met = func(up bool) { c.meet(i, up) }
		l.claim = func(runID string) error { return c.claim(i, runID) }
		c.lanes = append(c.lanes, l)
	}
	for i, l := range c.lanes {
		c.group.Go(func() error { c.left[i] = l.run(ctx); return nil })
	}
	c.group.Go(func() error { c.keeper.run(); return nil })
	return &Locker{core: c, ttl: cfg.TTL, nodeTimeout: nodeTimeout}, nil
}

// Dial is New on nodes named by URLs: redis://user:password@host:port/db,
// rediss:// for TLS, unix://user:password@/path?db=0. What else a URL may say is
// in go-redis' ParseURL.
//
// Without a port it is 6379, without a database 0. The host has no default, as
// localhost is another node on every machine: it is written out where it is
// meant. A URL without a host, a Unix one with a host, or one with a # is
// ErrInvalid like one that cannot be read, and the error repeats nothing of it.
// What is special in a password must be percent-encoded.
func Dial(urls []string, cfg Config) (*Locker, error) {
	nodes := make([]Node, len(urls))
	for i, u := range urls {
		opts, err := redis.ParseURL(u)
		if err == nil {
			err = misread(u)
		}
		if err != nil {
			return nil, invalid("URL %d of %d: %w", i+1, len(urls), withoutURL(err))
		}
		nodes[i] = Redis(opts)
	}
	return New(nodes, cfg)
}

// misread is why what ParseURL has read in a URL cannot be what was meant, or
// nil. A password that was not encoded ends the host's part too early, the
// password's beginning then passes for a port, and where no host is left
// ParseURL takes localhost.
func misread(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case strings.Contains(text, "#"): // also one with nothing after it, which Parse drops
		return errors.New("a # that is not encoded")
	case u.Scheme == "unix" && u.Host != "":
		return errors.New("a host where the path of a socket begins")
	case u.Scheme != "unix" && u.Hostname() == "":
		return errors.New("no host")
	}
	return nil
}

// WithTTL returns a view of the Locker with another TTL. It shares everything
// else, Close included. It returns ErrInvalid under New's rules for
// Config.TTL and Config.NodeTimeout.
func (l *Locker) WithTTL(ttl time.Duration) (*Locker, error) {
	if err := l.cfg.checkTTL("ttl", ttl); err != nil {
		return nil, err
	}
	nodeTimeout, err := l.cfg.nodeTimeout(ttl)
	if err != nil {
		return nil, err
	}
	for _, lane := range l.lanes {
		lane.expect(nodeTimeout)
	}
	return &Locker{core: l.core, ttl: ttl, nodeTimeout: nodeTimeout}, nil
}

// TryAcquire tries once to acquire key, and returns the lease, or an
// *AttemptError that is one of
//   - ErrHeld: another holds it. A valid lease of this process on the key is
//     answered so without asking the nodes.
//   - ErrNoQuorum: too few nodes voted, and each Vote says why.
//   - ErrTooSlow: they answered so late that nothing was left of the validity.
//   - ctx's error: it was done first.
//   - ErrClosed.
//
// or ErrInvalid for a key that is empty or longer than 1024 bytes, prefix
// included, or that Config.Fenced leaves no room for a counter. It takes at most Config.NodeTimeout, apart from the very first
// connections of a Locker, which are waited for up to their dial timeout. A
// failed attempt leaves nothing behind: what nodes have granted, or may still
// grant, is released as soon as they can be reached.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, l.tryOnce)
}

// Acquire is TryAcquire until it succeeds or ctx is done. Goroutines of this
// process that want one key take turns, first come first served; between
// attempts Acquire backs off as Config.Backoff says.
//
// Between processes chance decides. While a lock passes from holder to holder,
// attempts ask one node first, and the others only if that one grants. When the
// goroutines that stood in line have had their turn, or after a second of turns
// where no other process is known to want the key, the next one lets others go
// first, for 16 ms.
//
// When ctx is done the error wraps its cause and why the last attempt failed.
// Only ErrInvalid and ErrClosed end the wait otherwise.
func (l *Locker) Acquire(ctx context.Context, key string) (*Lease, error) {
	return l.acquire(ctx, key, l.tryInTurn)
}

// Do acquires key as Acquire does, runs fn while it renews the lease, and
// releases it. fn's context ends when the lease does, with the cause, and when
// ctx does; Do always waits for fn, and holds the lock until fn has returned. If the lease is lost, or cannot be released,
// the error is fn's joined with that: fn may have run partly without the lock.
// If fn panics or calls runtime.Goexit, the lease is released first. A lock is not
// re-entrant: a Do or Acquire of the same key inside fn waits for itself.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context, lease *Lease) error) (err error) {
	if fn == nil {
		return invalid("fn is nil: want what to do under the lock")
	}
	lease, err := l.acquire(ctx, key, l.tryInTurn)
	if err != nil {
		return err
	}
	lease.KeepAlive()
	defer func() {
		released := lease.Release(ctx)
		if errors.Is(released, ErrReleased) { // by fn itself, which is fine, or by Close
			if released = lease.reason(); errors.Is(released, ErrReleased) {
				released = nil
			}
		}
		err = errors.Join(err, released)
	}()
	work, cancel := lease.within(ctx)
	defer cancel()
	return fn(work, lease)
}

// Close ends the Locker. New operations get ErrClosed, waiting ones return it;
// leases that are held end, with ErrClosed as their contexts' cause, and are
// released. Close waits for that, for every key that a failed attempt may have
// left, and for every goroutine and connection of the Locker.
//
// A node that is away is waited for until what it may hold has expired. When ctx
// is done before, Close cuts the connections and returns ctx's error. Either way
// the error says what may be left on which node, and for how long. Closing again
// waits for the first Close and returns the same.
func (l *Locker) Close(ctx context.Context) error {
	if !l.close() {
		select {
		case <-l.closed:
			return l.result
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	stop := context.AfterFunc(ctx, func() { l.cut(context.Cause(ctx)) })

	var releases errgroup.Group
	for _, lease := range l.keeper.all() {
		// Whether it worked is seen in what is left on the nodes.
		releases.Go(func() error { lease.release(ErrClosed); return nil })
	}
	releases.Wait()
	l.finish()
	<-l.idle
	l.keeper.close()
	for _, lane := range l.lanes {
		lane.close()
	}
	l.group.Wait()

	l.result = errors.Join(l.left...)
	if !stop() {
		l.result = errors.Join(context.Cause(ctx), l.result)
	}
	l.cut(ErrClosed)
	close(l.closed)
	return l.result
}

// meet notes a lane's first connection, or its first failure to connect.
func (c *core) meet(i int, up bool) {
	vote := quorum.Unsent
	if up {
		vote = quorum.Granted
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.met.Outcome()
	if c.met.Cast(i, vote) != quorum.Open && before == quorum.Open {
		close(c.ready)
	}
}

// claim is why node i may not vote as the process runID, or nil.
func (c *core) claim(i int, runID string) error {
	if other, ok := c.roll.claim(i, runID); !ok {
		return fmt.Errorf("%w: it is the same server as %s, and has one vote", errNoVoter, c.lanes[other].node)
	}
	return nil
}

func (c *core) prefix(key string) string { return c.cfg.KeyPrefix + key }
