package redlock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// farNode is far, takes a second for a flight with an acquire and none for another, and
// sees what flights there are.
type farNode struct {
	willing
	mu      sync.Mutex // guards what follows
	flights []string
}

type farConn struct {
	skyConn
	*farNode
}

func (n *farNode) Connect(context.Context, time.Duration) (Conn, error) {
	return farConn{skyConn{"far", &sky{}}, n}, nil
}

func (c farConn) Send(ctx context.Context, flight []*Op) error {
	what := "ping"
	if len(flight) > 0 {
		what = flight[0].Kind.String()
	}
	c.farNode.mu.Lock()
	c.flights = append(c.flights, what)
	c.farNode.mu.Unlock()
	if what == "acquire" {
		time.Sleep(time.Second)
	}
	return c.willingConn.Send(ctx, flight)
}

// A debt that comes due while another key is in the air goes out then.
func TestDebtIsPaidWhileOthersAreInTheAir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &farNode{}
		l := newLane(n, clock.NewSkewed(1), laneTimes{late: time.Hour, stall: time.Hour, limit: time.Hour}, voter{})
		l.met, l.changed, l.claim = func(bool) {}, func(NodeEvent) {}, func(string) error { return nil }
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { l.run(ctx) })
		defer ended.Wait()
		defer cancel()
		newRound(1, acquireOp("slow", "t", time.Minute), l.clock.Now()).send([]*lane{l})
		synctest.Wait()
		now := l.clock.Now()
		l.mu.Lock()
		l.debts = append(l.debts, debt{
			op:    Op{Kind: OpRelease, Key: "owed", Token: "t", TTL: time.Minute},
			since: l.at(now),
			again: l.at(now) + 50*time.Millisecond,
		})
		l.mu.Unlock()
		l.rouse()
		time.Sleep(100 * time.Millisecond)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.flights) != 2 || n.flights[1] != "release" {
			t.Errorf("flights: %q, want the acquire and the release", n.flights)
		}
	})
}
