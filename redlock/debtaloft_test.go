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
	loads   int
}

type farConn struct {
	skyConn
	*farNode
}

func (n *farNode) Connect(context.Context, time.Duration) (Conn, error) {
	return farConn{skyConn{"far", &sky{}}, n}, nil
}

func (c farConn) Gather() {
	c.farNode.mu.Lock()
	defer c.farNode.mu.Unlock()
	if c.loads++; c.loads > 1000 {
		panic("the lane does not rest")
	}
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

// A debt that comes due while another key is in the air goes out then, and one for the
// key that is waits until that has landed.
func TestDebtIsPaidWhileOthersAreInTheAir(t *testing.T) {
	t.Run("another", func(t *testing.T) { debtAloft(t, "owed", 100*time.Millisecond) })
	t.Run("the same", func(t *testing.T) { debtAloft(t, "slow", time.Second) })
}

// debtAloft has a debt for key come due while an acquire of "slow" is in the air, which
// is to be paid by then.
func debtAloft(t *testing.T, key string, by time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		n := &farNode{}
		l := runLane(t, n, clock.NewSkewed(1), time.Hour)
		newRound(1, acquireOp("slow", "t", time.Minute), l.clock.Now()).send([]*lane{l})
		synctest.Wait()
		now := l.clock.Now()
		l.mu.Lock()
		l.debts = append(l.debts, debt{
			op:    Op{Kind: OpRelease, Key: key, Token: "t", TTL: time.Minute},
			since: l.at(now),
			again: l.at(now) + 50*time.Millisecond,
		})
		l.mu.Unlock()
		l.rouse()
		time.Sleep(by - time.Millisecond)
		if by == time.Second {
			n.mu.Lock()
			early := len(n.flights)
			n.mu.Unlock()
			if early != 1 {
				t.Errorf("%d flights before the first has landed", early)
			}
		}
		time.Sleep(2 * time.Millisecond)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.flights) != 2 || n.flights[1] != "release" {
			t.Errorf("flights: %q, want the acquire and the release", n.flights)
		}
	})
}
