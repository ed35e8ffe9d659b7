package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// hasty is a node whose flights are given up early, so that a test sees many
// connections end.
type hasty struct {
	Node
	limit time.Duration
}

func (n hasty) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := n.Node.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	return hastyConn{c, n.limit}, nil
}

type hastyConn struct {
	Conn
	limit time.Duration
}

func (c hastyConn) Send(ctx context.Context, flight []*Op) error {
	defer time.AfterFunc(c.limit, func() { c.Conn.Close() }).Stop()
	return c.Conn.Send(ctx, flight)
}

// A server that is stopped and goes on at random, on a network that delays at
// random, carries out requests whose connection was given up long ago. None of
// them leaves a phantom, because the connection's successor has it killed before
// it releases anything; without that, which is the control, some do.
func TestNoPhantomOnAStoppedServer(t *testing.T) {
	redisproc.Require(t)
	t.Parallel()
	const cycles = 300
	total := stopAndGo(t, cycles, false)
	t.Logf("%v", total)
	if total.phantoms > 0 {
		t.Errorf("%d phantoms in %d cycles", total.phantoms, total.cycles)
	}
	if total.cycles < cycles || total.stops < cycles/4 || total.conns < cycles/4 || total.kills < cycles/4 {
		t.Errorf("%v: the test shows nothing", total)
	}
	for range 5 {
		control := stopAndGo(t, cycles/5, true)
		t.Logf("control: %v", control)
		if control.phantoms > 0 {
			return
		}
	}
	t.Error("no phantoms even without the kill: the test shows nothing")
}

// tally is what has happened in stopAndGo.
type tally struct{ cycles, stops, conns, kills, phantoms int }

func (n tally) String() string {
	return fmt.Sprintf("%d phantoms in %d cycles with %d stops, on %d connections, %d of which were killed", n.phantoms, n.cycles, n.stops, n.conns, n.kills)
}

// stopAndGo runs so many cycles against servers that are stopped and go on.
func stopAndGo(t *testing.T, cycles int, control bool) (total tally) {
	t.Helper()
	const teams = 4 // they mostly wait
	var mu sync.Mutex
	var wg sync.WaitGroup
	for team := range teams {
		s := startServer(t, redisproc.Options{})
		wg.Go(func() {
			n := (&stopped{realServer: s, draw: rand.New(rand.NewPCG(1, uint64(team)))}).run(t, cycles/teams, control)
			mu.Lock()
			defer mu.Unlock()
			total.cycles += n.cycles
			total.stops += n.stops
			total.conns += n.conns
			total.kills += n.kills
			total.phantoms += n.phantoms
		})
	}
	wg.Wait()
	return total
}

// stopped is a real server that is not there all the time.
type stopped struct {
	*realServer
	link slowLink
	draw *rand.Rand
	lane *lane
}

// run has a Locker lock on three nodes of which the server is one.
func (s *stopped) run(t *testing.T, cycles int, control bool) (n tally) {
	s.options.Dialer = s.link.dial
	node := s.node()
	if control {
		node = sparing{node}
	}
	_, nodes := memNodes(3)
	nodes[0] = hasty{node, 20 * time.Millisecond}
	cfg := patient()
	cfg.NodeTimeout = 50 * time.Millisecond // the breaker's measure; the other two answer at once
	l, err := New(nodes, cfg)
	if err != nil {
		t.Error(err)
		return n
	}
	defer s.link.conns.Wait()
	defer shut(t, l)
	s.lane = l.lanes[0]
	cycle(t, l, "warm")

	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for i := range cycles {
		keys, stop := s.disturb(t, l, fmt.Sprint("k", i))
		if stop {
			n.stops++
		}
		if !s.settle(ctx) {
			t.Error("the lane does not settle")
			return n
		}
		found, err := s.admin.Exists(ctx, keys...).Result()
		if err != nil {
			t.Error(err)
			return n
		}
		n.phantoms += int(found)
		n.cycles++
	}
	s.lane.mu.Lock()
	n.conns = int(s.lane.gen)
	s.lane.mu.Unlock()
	info, err := s.admin.Info(ctx, "commandstats").Result()
	if _, calls, ok := strings.Cut(info, "cmdstat_client|kill:calls="); err == nil && ok {
		fmt.Sscanf(calls, "%d", &n.kills)
	}
	return n
}

// disturb acquires and releases a few keys while the server stands still and
// the network is slow, or one of them, or neither. When it returns both are
// well again.
func (s *stopped) disturb(t *testing.T, l *Locker, name string) (keys []string, stop bool) {
	random := func(limit time.Duration) time.Duration { return time.Duration(s.draw.Int64N(int64(limit))) }
	halt := func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	stop = s.draw.IntN(4) > 0
	before := s.draw.IntN(2) == 0
	if stop && before {
		halt()
	}
	s.link.set(random(150*time.Millisecond) * time.Duration(s.draw.IntN(2)))
	for j := range 1 + s.draw.IntN(3) {
		keys = append(keys, fmt.Sprint(name, "/", j))
		// On a busy machine the others may be late too. What is undone then must leave
		// no phantom either.
		lease, err := l.TryAcquire(context.Background(), keys[j])
		if err != nil {
			if !errors.Is(err, ErrNoQuorum) {
				t.Error(err)
			}
			continue
		}
		time.Sleep(random(3 * time.Millisecond))
		if err := lease.Release(context.Background()); err != nil && !errors.Is(err, ErrNoQuorum) {
			t.Error(err)
		}
	}
	if stop && !before {
		halt()
	}
	s.link.set(0)
	time.Sleep(random(100 * time.Millisecond))
	if stop {
		if err := s.Cont(); err != nil {
			t.Error(err)
		}
	}
	return keys, stop
}

// settle waits until the lane has nothing left to do, nothing is under way to
// the server, and the server has carried out all that has arrived.
func (s *stopped) settle(ctx context.Context) bool {
	idle := func() bool {
		s.lane.mu.Lock()
		defer s.lane.mu.Unlock()
		return s.lane.state == open && len(s.lane.queue) == 0 && len(s.lane.debts) == 0 && s.lane.carrying == 0
	}
	for !idle() || !s.link.clear() {
		if ctx.Err() != nil {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	for range 2 { // one round of its loop, whatever the order of connections in it
		if s.admin.Ping(ctx).Err() != nil {
			return false
		}
	}
	return true
}
