package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// fenceWorld is what a run is made of.
type fenceWorld struct {
	cfg   Config
	late  time.Duration // how late the second client's clock is
	wipes bool          // every tenth round a node loses all it has
	teams int           // that share the rounds
}

// fenceTally is what has happened in a run.
type fenceTally struct{ granted, again, refused, wiped, stamped, faults int }

func (n fenceTally) String() string {
	return fmt.Sprintf("%d granted, %d of them not at once, %d refused, %d nodes wiped, %d stamps, %d connections cut or flights held",
		n.granted, n.again, n.refused, n.wiped, n.stamped, n.faults)
}

// fenceRun has teams of clients and servers go through the rounds together.
func fenceRun(t *testing.T, w fenceWorld) (total fenceTally) {
	t.Helper()
	began := time.Now()
	rounds := (fenceRounds(t) + w.teams - 1) / w.teams
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range w.teams {
		team := newFenceTeam(t, w, uint64(i))
		wg.Go(func() {
			n := team.run(rounds)
			mu.Lock()
			defer mu.Unlock()
			total.granted += n.granted
			total.again += n.again
			total.refused += n.refused
			total.wiped += n.wiped
			total.stamped += n.stamped
			total.faults += n.faults
		})
	}
	wg.Wait()
	t.Logf("%v, in %v", total, time.Since(began).Round(time.Millisecond))
	if total.granted+total.refused != w.teams*rounds || total.faults < w.teams*rounds/2 || total.stamped == 0 {
		t.Error("the test shows too little")
	}
	return total
}

// fenceTeam is two clients of five servers.
type fenceTeam struct {
	t       *testing.T
	w       fenceWorld
	draw    *rand.Rand
	servers []*realServer
	clients [2]fenceClient
	stamped atomic.Int64
}

// fenceClient is a client with its own way to each server.
type fenceClient struct {
	*Locker
	links []*redisproc.Proxy
}

func newFenceTeam(t *testing.T, w fenceWorld, number uint64) *fenceTeam {
	t.Helper()
	team := &fenceTeam{t: t, w: w, draw: rand.New(rand.NewPCG(number, 8))}
	for range 5 {
		team.servers = append(team.servers, startServer(t, redisproc.Options{}))
	}
	for i := range team.clients {
		c := &team.clients[i]
		var nodes []Node
		for _, s := range team.servers {
			link := proxyTo(t, s)
			c.links = append(c.links, link)
			o := s.options
			o.Addr = link.Addr()
			nodes = append(nodes, stampCounter{Redis(&o), &team.stamped})
		}
		cfg := w.cfg
		cfg.Backoff = func(int) time.Duration { return 5 * time.Millisecond }
		late := clock.NewSkewed(1)
		late.Step(time.Since(late.Now().Wall()) - w.late)
		if cfg.Clock = clock.Clock(late); i == 0 {
			cfg.Clock = clock.System{}
		}
		c.Locker = onServers(t, nodes, cfg)
	}
	return team
}

// run goes through so many rounds.
func (f *fenceTeam) run(rounds int) (n fenceTally) {
	var last fence.Token
	before := f.draw.Perm(5)
	for round := range rounds {
		nodes := f.draw.Perm(5) // the first two are out of reach
		if f.w.wipes && round%10 == 5 {
			// The worst there is: of the nodes that know the last fence only this one
			// stays in reach, of the client whose clock is late.
			nodes = []int{before[2], before[3], before[4], before[0], before[1]}
			f.wipe(f.servers[before[4]])
			n.wiped++
		}
		// Five rounds with a node in quarantine, and five when it counts again.
		if !f.settle(f.w.wipes && round%10 == 0) {
			return n
		}
		before = nodes
		pair := nodes[:2]
		for _, i := range pair {
			hold := f.draw.IntN(2) == 0 && round%10 != 4 // what is held arrives in the end
			for _, c := range f.clients {
				if hold {
					c.links[i].Hold(redisproc.Both)
				} else {
					c.links[i].Cut()
				}
			}
		}
		lease, attempts, err := f.grant(f.clients[round%2].Locker)
		if err == nil && attempts > 1 {
			n.again++
		}
		switch {
		case err == nil && lease.Fence() <= last:
			f.t.Errorf("round %d: fence %d after %d", round, lease.Fence(), last)
			fallthrough
		case err == nil:
			n.granted++
			last = lease.Fence()
			// With a short TTL it may come too late on a busy machine.
			if err := lease.Release(context.Background()); err != nil && !f.w.wipes {
				f.t.Errorf("round %d: release: %v", round, err)
			}
		case f.w.wipes && errors.Is(err, ErrNoQuorum) && quarantinedIn(err) > 0:
			n.refused++
		default:
			f.t.Errorf("round %d: %v", round, err)
		}
		for _, i := range pair {
			for _, c := range f.clients {
				c.links[i].Heal()
			}
		}
	}
	n.stamped = int(f.stamped.Load())
	for _, c := range f.clients {
		for _, link := range c.links {
			happened := link.Tally()
			n.faults += happened.Cut + happened.Held
		}
	}
	return n
}

// grant acquires the key. What the client before has left where it was cut off is
// waited for; a quarantine is not.
func (f *fenceTeam) grant(l *Locker) (lease *Lease, attempts int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for {
		attempts++
		lease, err = l.TryAcquire(ctx, "k")
		if err == nil || ctx.Err() != nil || quarantinedIn(err) > 0 && errors.Is(err, ErrNoQuorum) {
			return lease, attempts, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// quarantinedIn is how many nodes did not count in a failed attempt because they
// had just restarted.
func quarantinedIn(err error) (count int) {
	var failure *AttemptError
	if errors.As(err, &failure) {
		for _, v := range failure.Votes {
			if v.Quarantined > 0 {
				count++
			}
		}
	}
	return count
}

// settle waits until all nodes answer both clients, and if they are to vote, are
// out of quarantine.
func (f *fenceTeam) settle(voting bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for _, c := range f.clients {
		for !c.well(ctx, voting) {
			if ctx.Err() != nil {
				f.t.Error("the nodes do not become well")
				return false
			}
			time.Sleep(time.Millisecond)
		}
	}
	return true
}

// well asks all nodes for an answer: a lane that has sent nothing since it was cut
// off has not noticed.
func (c fenceClient) well(ctx context.Context, voting bool) bool {
	seen, err := c.Inspect(ctx, "k")
	if err != nil {
		return false
	}
	for i, v := range seen.Votes {
		if v.Err != nil || voting && c.lanes[i].standing(c.clock.Now()) != nil {
			return false
		}
	}
	return true
}

// wipe has a server lose all it has.
func (f *fenceTeam) wipe(s *realServer) {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := s.Kill(); err != nil {
		f.t.Error(err)
	}
	if err := s.Restart(ctx, redisproc.Wipe); err != nil {
		f.t.Error(err)
	}
}

// stampCounter counts the stamps that go to a node.
type stampCounter struct {
	Node
	count *atomic.Int64
}

func (n stampCounter) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := n.Node.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	return stampCounterConn{c, n.count}, nil
}

type stampCounterConn struct {
	Conn
	count *atomic.Int64
}

func (c stampCounterConn) Send(ctx context.Context, flight []*Op) error {
	for _, op := range flight {
		if op.Kind == OpStamp {
			c.count.Add(1)
		}
	}
	return c.Conn.Send(ctx, flight)
}
