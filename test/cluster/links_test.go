package cluster

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/client"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// links does something to the links of all clients to the first two nodes, while
// they work, and sees in the tally that it happened.
func links(what string, fault func(*redisproc.Proxy), happened func(redisproc.Tally) int) func(*scenario) {
	return func(s *scenario) {
		s.start(4, 2, nil)
		s.progress(20)
		s.eachLink(fault)
		from := client.Now()
		s.pass(ttl)
		s.progressSince(from, 50)
		var count int
		s.eachLink(func(p *redisproc.Proxy) { count += happened(p.Tally()) })
		if count == 0 {
			s.Fatal("it did not happen: " + what)
		}
		s.happened("%s: %d", what, count)
		s.eachLink((*redisproc.Proxy).Heal)
		s.progress(20)
		s.end()
	}
}

// eachLink does something to the links of all clients to the first two nodes.
func (s *scenario) eachLink(do func(*redisproc.Proxy)) {
	for _, p := range s.clients {
		for _, l := range p.links[:2] {
			do(l)
		}
	}
}

func hole(way redisproc.Way) func(*redisproc.Proxy) {
	return func(p *redisproc.Proxy) { p.Hole(way) }
}

// slow is later than a client waits for a node.
func slow(p *redisproc.Proxy) { p.Lag(ttl / 3) }

// disconnected has two masters taken off their network.
func disconnected(s *scenario) {
	s.start(4, 2, nil)
	s.progress(20)
	victims := s.nodes[:2]
	s.disconnect(victims)
	from := client.Now()
	s.pass(ttl)
	s.progressSince(from, 50)
	s.connect(victims)
	s.progress(20)
	s.end()
}

func (s *scenario) disconnect(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error { return n.Disconnect(s.ctx) })
	s.silent(which)
	s.happened("%d disconnected", len(which))
}

func (s *scenario) connect(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error { return n.Connect(s.ctx) })
	s.answer(which)
}

// answer waits until nodes answer.
func (s *scenario) answer(which []*nodes.Node) {
	s.Helper()
	for _, n := range which {
		eventually(s.T, n.Addr()+" answers", func() bool {
			inTime, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			return n.Answers(inTime)
		})
	}
}
