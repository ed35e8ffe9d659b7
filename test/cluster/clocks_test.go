package cluster

import (
	"time"

	"github.com/quorumlock/quorumlock/test/cluster/client"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// clientClocks has clients whose clocks run slower and faster than that of the
// machine, as much as the lock allows for, and whose wall clocks are stepped.
func clientClocks(s *scenario) {
	for _, change := range []func(*client.Settings){
		func(c *client.Settings) { c.Rate = 0.995 },
		func(c *client.Settings) { c.Rate = 1.005 },
		func(c *client.Settings) { c.Step, c.Hold = time.Hour, ttl/2 },
		func(c *client.Settings) { c.Step, c.Hold = -time.Hour, ttl/2 },
		nil,
	} {
		s.start(1, 2, change)
	}
	s.progress(50)
	s.pass(2 * ttl)
	s.progress(50)
	v := s.judge()
	if s.report.Steps == 0 {
		s.Error("no clock was stepped")
	}
	s.happened("%d steps of wall clocks, rates of 0.995 and 1.005", s.report.Steps)
	s.clean(v)
}

// nodeClocks has the clocks of two nodes stepped while clients work, forward by more
// than a lease lasts and back. Keys then end too early and two may hold one; the
// resource must not notice.
func nodeClocks(s *scenario) {
	s.timingBroken = true
	s.start(4, 2, func(c *client.Settings) { c.Hold = ttl / 4 })
	s.progress(20)
	for range 3 {
		for _, by := range []time.Duration{2 * ttl, -4 * ttl, 2 * ttl} {
			for _, n := range s.nodes[:3] {
				before, err := n.Admin.Time(s.ctx).Result()
				s.must(err)
				s.must(n.Server.(nodes.Clocked).StepClock(by))
				after, err := n.Admin.Time(s.ctx).Result()
				s.must(err)
				if moved := after.Sub(before); by < 0 && moved > by/2 || by > 0 && moved < by/2 {
					s.Errorf("the clock of %s was to be stepped by %v and has moved by %v", n.Addr(), by, moved)
				}
			}
			s.progress(10)
		}
	}
	s.happened("27 steps of the clocks of three nodes")
	s.progress(20)
	s.end()
}
