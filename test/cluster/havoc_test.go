package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/client"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// actOnNode has something happen to a node.
func (n *nemesis) actOnNode() {
	i, longest, ok := n.victim()
	if !ok {
		return
	}
	node := n.nodes[i]
	f := fault{node: i}
	switch n.draw.IntN(6) {
	case 0, 1:
		f.kind = "kill"
		n.must(node.Kill(n.ctx))
		n.sawSilence(f.kind, node)
		f.end = func() {
			n.must(node.Restart(n.ctx, redisproc.Keep))
			n.recovers(i)
		}
	case 2:
		f.kind = "pause"
		n.must(node.Pause(n.ctx))
		n.sawSilence(f.kind, node)
		f.end = func() { n.must(node.Resume(n.ctx)) }
	case 3:
		f.kind = "disconnect"
		err := node.Disconnect(n.ctx)
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		n.must(err)
		n.sawSilence(f.kind, node)
		f.end = func() { n.must(node.Connect(n.ctx)) }
	default:
		r := []refusal{readOnly, outOfMemory, password, busy}[n.draw.IntN(4)]
		f.kind = r.code
		before, err := node.Refused(n.ctx, r.code)
		n.must(err)
		end := r.begin(n.scenario, node)
		f.end = func() {
			end()
			after, err := node.Refused(n.ctx, r.code)
			n.must(err)
			if after > before {
				n.seen[r.code]++
			}
			if r.code == readOnly.code {
				n.recovers(i) // it has been a replica
			}
		}
	}
	n.begin(f, longest)
}

// sawSilence counts a fault if the node does not answer.
func (n *nemesis) sawSilence(kind string, node *nodes.Node) {
	inTime, cancel := context.WithTimeout(n.ctx, 50*time.Millisecond)
	defer cancel()
	if !node.Answers(inTime) {
		n.seen[kind]++
	}
}

// recovers is when a node has come back that may have forgotten something.
func (n *nemesis) recovers(i int) {
	if !n.durable {
		n.unwell[i] = client.Now() + need + time.Second
	}
}

// actOnClient stops or kills one of the processes.
func (n *nemesis) actOnClient() {
	var alive []int
	for i, p := range n.clients {
		if !p.killed && !n.stopped(p) {
			alive = append(alive, i)
		}
	}
	if len(alive) < 4 {
		return
	}
	i := alive[n.draw.IntN(len(alive))]
	p := n.clients[i]
	if n.draw.IntN(3) == 0 {
		n.begun["client killed"]++
		p.kill()
		n.seen["client killed"]++
		n.scenario.start(1, 2, n.settings(n.begun["client killed"]))
		return
	}
	p.stop()
	n.seen["client stopped"]++
	n.begin(fault{kind: "client stopped", node: -1, p: p, end: p.cont}, 2*ttl)
}

// stopped says whether a process is.
func (n *nemesis) stopped(p *process) bool {
	for _, f := range n.active {
		if f.p == p && f.kind == "client stopped" {
			return true
		}
	}
	return false
}

// actOnLinks has something happen between some clients and one or two nodes: to one
// process, or to all.
func (n *nemesis) actOnLinks() {
	kind, do := n.linkFault()
	if n.draw.IntN(3) == 0 {
		i, longest, ok := n.victim()
		if !ok {
			return
		}
		var links []*redisproc.Proxy
		for _, p := range n.clients {
			links = append(links, p.links[i])
		}
		n.onLinks(fault{kind: kind, node: i}, links, do, longest)
		return
	}
	p := n.clients[n.draw.IntN(len(n.clients))]
	for range 1 + n.draw.IntN(2) {
		i := n.draw.IntN(len(p.links))
		n.onLinks(fault{kind: kind, node: -1, p: p}, p.links[i:i+1], do, 3*time.Second)
	}
}

func (n *nemesis) onLinks(f fault, links []*redisproc.Proxy, do func(*redisproc.Proxy), longest time.Duration) {
	for _, l := range links {
		do(l)
	}
	f.end = func() {
		for _, l := range links {
			l.Heal()
		}
	}
	n.begin(f, longest)
}

// linkFault is something that can happen to a link.
func (n *nemesis) linkFault() (kind string, do func(*redisproc.Proxy)) {
	way := []redisproc.Way{redisproc.Requests, redisproc.Replies, redisproc.Both}[n.draw.IntN(3)]
	d := n.upTo(ttl / 2)
	few := 1 + n.draw.IntN(5)
	switch n.draw.IntN(7) {
	case 0:
		return "cut", (*redisproc.Proxy).Cut
	case 1:
		return "hole", hole(way)
	case 2:
		return "hold", func(p *redisproc.Proxy) { p.Hold(way) }
	case 3:
		return "late", func(p *redisproc.Proxy) { p.Late(d) }
	case 4:
		return "lag", func(p *redisproc.Proxy) { p.Lag(d) }
	case 5:
		return "lose", func(p *redisproc.Proxy) { p.Lose(few) }
	default:
		return "mute", func(p *redisproc.Proxy) { p.Mute(few) }
	}
}
