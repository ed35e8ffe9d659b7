package sim

import (
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// release is what a node was asked to release.
type release struct {
	node  *node
	token redlock.Token
}

// did judges what a node was asked on a connection, and did: nobody deletes a lease
// but by its own release (I5), and an acquire that a connection still carried when
// it was replaced is not carried out behind the release that came on the next (I6).
func (j *judge) did(n *node, on *conn, op *redlock.Op) {
	w, c := j.world, on.link.client
	switch {
	case c.gone:
	case op.Kind == redlock.OpAcquire && op.Reply.Vote == quorum.Granted:
		// Where no connection can be killed, releases are repeated instead.
		later := j.releases[release{n, op.Token}]
		if later != nil && later.run == on.run && later.peer.ID > on.peer.ID && w.counts["nokill"] == 0 {
			w.violates("%s has %s with token %s, which %s has released there before, on a later connection", n.name, op.Key, op.Token.Digest(), c.name)
		}
	case op.Kind == redlock.OpRelease:
		j.releases[release{n, op.Token}] = on
	}
	h := j.byToken[op.Token]
	if h == nil || op.Kind != redlock.OpRelease || op.Reply.Vote != quorum.Granted {
		return
	}
	switch {
	case h.crashed:
	case h.lost != 0: // told, but promised for a little longer
		j.stillOn(h)
	case h.open(w.now):
		w.violates("%s has %s deleted on %s, and holds it for %v more", c.name, h.name, n.name, h.until-w.now)
	}
}

// killed judges that a client has had a node end a connection: it was its own.
func (j *judge) killed(n *node, by, whose *client) {
	if by != whose {
		j.world.violates("%s has %s end a connection of %s", by.name, n.name, whose.name)
	}
}
