package redlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// faraway is a node as one client reaches it: its requests arrive late, or not at
// all.
type faraway struct {
	*memNode
	late time.Duration
	cut  bool
}

type farawayConn struct {
	Conn
	node *faraway
}

func (n *faraway) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := n.memNode.Connect(ctx, limit)
	return farawayConn{c, n}, err
}

func (c farawayConn) Send(ctx context.Context, flight []*Op) error {
	n := c.node
	n.mu.Lock()
	late, cut := n.late, n.cut
	n.mu.Unlock()
	if cut && len(flight) > 0 {
		time.Sleep(4 * time.Second)
		return errMemEnded
	}
	time.Sleep(late)
	return c.Conn.Send(ctx, flight)
}

// What a restarted node has forgotten may be a vote in a round that is still
// going on. So nothing that the node says yes to counts against that vote, not
// even an extension of what it holds today: with B's vote from before the
// restart, and A's extension from after it, both would have a quorum.
func TestAQuarantinedNodeExtendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, direct := memNodes(3)
		z := &faraway{memNode: mem[2]} // as A reaches it
		slowY, slowZ := &faraway{memNode: mem[1]}, &faraway{memNode: mem[2]}
		a := newLocker(t, []Node{direct[0], direct[1], z}, Config{TTL: 2 * time.Second})
		b := newLocker(t, []Node{direct[0], slowY, slowZ}, Config{TTL: 30 * time.Second, NodeTimeout: 5 * time.Second})
		time.Sleep(time.Second)

		for _, n := range []*faraway{slowY, slowZ} {
			n.set(func(*memNode) { n.late = 2600 * time.Millisecond })
		}
		won := make(chan *Lease, 1)
		go func() {
			lease, _ := b.TryAcquire(context.Background(), "k")
			won <- lease
		}()
		time.Sleep(10 * time.Millisecond) // x has granted B
		mem[0].restart(false)
		time.Sleep(100 * time.Millisecond)
		a.TryAcquire(t.Context(), "other") // A finds its connection to x ended
		time.Sleep(400 * time.Millisecond)
		leaseA := acquire(t, a, "k") // on y and z, and on x, which does not count
		if heldOn(mem, "k", leaseA.Token()) != 3 {
			t.Fatalf("not all nodes hold A's key: %s", holders(mem, "k"))
		}
		z.set(func(*memNode) { z.cut = true })
		for range 2 {
			time.Sleep(500 * time.Millisecond)
			if err := leaseA.Extend(t.Context(), 2*time.Second); err == nil {
				t.Error("extended by y and by x, which is in quarantine")
			}
		}
		leaseB := <-won
		if leaseB == nil {
			t.Fatal("B has won nothing: this shows nothing")
		}
		if leaseA.Remaining() > 0 && leaseB.Remaining() > 0 {
			t.Errorf("two holders: A for %v more, B for %v", leaseA.Remaining(), leaseB.Remaining())
		}
	})
}
