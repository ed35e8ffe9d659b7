package redlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// What is sent at once on a connection to a node in memory arrives, and is answered, in
// the order of sending, though what comes later would be faster; the end of the
// connection is that of all of it.
func TestMemNodeKeepsTheOrderOfSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(1)
		toNodes, _ := ways(nodes)
		for name, node := range map[string]Node{"the node": nodes[0], "a way to it": toNodes[0]} {
			c, err := node.Connect(t.Context(), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			var sends sync.WaitGroup
			var mu sync.Mutex // guards failed
			failed := 0
			var sent []*Op
			send := func(i int) {
				op := acquireOp(fmt.Sprint(name, i), "t", time.Hour)
				sent = append(sent, &op)
				before := sent[:i]
				sends.Go(func() {
					err := c.Send(context.Background(), []*Op{&op})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed++
						return
					}
					for _, earlier := range before {
						if earlier.Reply.Vote != quorum.Granted {
							t.Errorf("%s: the answer to %s comes before that to %s", name, op.Key, earlier.Key)
						}
					}
				})
				synctest.Wait()
			}
			done := len(mem[0].history())
			for i := range 4 { // each is faster than the one before it, on its way and back
				faster := time.Duration(4-i) * 10 * time.Millisecond
				mem[0].set(func(n *memNode) { n.late, n.lag = faster, faster })
				toNodes[0].set(faster, false)
				send(i)
			}
			sends.Wait()
			var carried []string
			for _, op := range mem[0].history()[done:] {
				carried = append(carried, op.Key)
			}
			if failed > 0 {
				t.Errorf("%s: %d have failed", name, failed)
			}
			if !slices.IsSorted(carried) || len(carried) != 4 {
				t.Errorf("%s: %q are carried out in this order", name, carried)
			}

			resume := mem[0].stop()
			send(4)
			send(5)
			sends.Wait() // for the limit
			if failed != 2 {
				t.Errorf("%s: %d have failed on a node that is stopped, want 2", name, failed)
			}
			resume()
			c.Close()
			time.Sleep(time.Second)
		}
	})
}
