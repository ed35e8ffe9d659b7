package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// A phantom is a key that an acquire sets after its own release has been
// carried out: it stays for its whole TTL, and nobody holds it. It takes a
// request that is still under way, or lies unread in a stopped process, when its
// connection is given up and the release is sent on the next one.

// sparing is a node whose connections say that they kill, and do not: the
// control of every test that there are no phantoms.
type sparing struct{ Node }

func (n sparing) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	c, err := n.Node.Connect(ctx, limit)
	if err != nil {
		return nil, err
	}
	return sparingConn{c}, nil
}

type sparingConn struct{ Conn }

func (sparingConn) Kill(context.Context, int64) error { return nil }

// Whatever the user of a node may do, no phantom stays: the connection before is
// killed, or where that is not permitted, or the node does not tell whom to
// kill, the release is repeated until the phantom is caught.
func TestNoPhantomOfALateRequest(t *testing.T) {
	for name, test := range map[string]struct {
		deny     []string
		control  bool
		toldWhom bool // to kill
	}{
		"all permitted":  {toldWhom: true},
		"no CLIENT KILL": {deny: []string{"client|kill"}, toldWhom: true},
		"no CLIENT ID":   {deny: []string{"client|id"}},
		"no INFO":        {deny: []string{"info"}},
		"none of them":   {deny: []string{"client", "info"}},
		"control":        {control: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 3, respfake.Options{Users: map[string]respfake.User{"default": {Deny: test.deny}}})
				if test.control {
					nodes[0] = sparing{nodes[0]}
				}
				victim := servers[0]
				l := newLocker(t, nodes, Config{AllowUnidentified: true, TTL: 20 * time.Second, MaxTTL: 20 * time.Second})
				synctest.Wait()
				draw := rand.New(rand.NewPCG(3, 4))
				phantoms := 0
				for i := range 60 {
					var keys []string
					delay := time.Duration(draw.IntN(8000)) * time.Millisecond
					hang := time.Duration(draw.IntN(7000)) * time.Millisecond
					if draw.IntN(2) == 0 {
						victim.Hang()
						time.AfterFunc(hang, victim.Continue)
					}
					victim.Late(delay)
					for j := range 1 + draw.IntN(3) {
						keys = append(keys, fmt.Sprint(i, "/", j))
						cycle(t, l, keys[j])
					}
					synctest.Wait()
					victim.Late(0)
					time.Sleep(9500 * time.Millisecond) // shorter than the TTL
					for _, key := range keys {
						if tokenOn(victim, key) != "" {
							phantoms++
						}
					}
				}
				t.Logf("%d phantoms; %d acquires and %d connections have reached the node", phantoms, asked(victim, "set"), victim.Accepted())
				if test.control && phantoms == 0 {
					t.Error("no phantoms even without the kill: the test shows nothing")
				}
				if !test.control && phantoms > 0 {
					t.Errorf("%d phantoms", phantoms)
				}
				if kills := asked(victim, "client|kill"); kills > 0 != test.toldWhom {
					t.Errorf("the node was asked %d times to kill", kills)
				}
			})
		})
	}
}
