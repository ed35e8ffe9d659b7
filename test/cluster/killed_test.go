package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/test/cluster/client"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// killed has so many masters killed while 32 clients work, and they come back with
// their data.
func killed(masters int) func(*scenario) {
	return func(s *scenario) {
		s.start(8, 4, nil)
		s.progress(30)
		victims := s.nodes[:masters]
		s.kill(victims)
		s.progress(30)
		s.back(victims, redisproc.Keep)
		s.progress(30)
		s.end()
	}
}

// majority has three masters killed and brought back: with their data where they are
// durable, and else without. Some hold for as long as their leases last: were these
// forgotten, others would get in before they had ended.
func majority(s *scenario) {
	s.start(6, 4, nil)
	s.start(2, 4, func(c *client.Settings) { c.TTL, c.Hold = maxTTL, 4*maxTTL })
	s.progress(30)
	victims := s.nodes[1:4]
	s.kill(victims)
	gone := client.Now()
	s.pass(ttl / 10)
	down := client.Now()
	back := s.back(victims, redisproc.Keep) // with the first there is a majority
	s.progressSince(back, 50)
	v := s.judge()
	for _, h := range s.holds() {
		if h.Called > gone && h.Acquired < down {
			s.Errorf("two of five have granted a lease: %v", h)
		}
		if h.Acquired >= back && (s.report.Back == 0 || h.Acquired-back < s.report.Back) {
			s.report.Back = h.Acquired - back
		}
	}
	s.clean(v)
}

// holds are the leases of the run.
func (s *scenario) holds() []history.Hold {
	s.Helper()
	run, err := history.Recorded(s.record.events)
	s.must(err)
	return run.Holds
}

// rolling has each master restarted while clients work.
func rolling(s *scenario) {
	s.start(4, 4, nil)
	for i := range s.nodes {
		s.progress(30)
		s.kill(s.nodes[i : i+1])
		s.progress(30)
		s.back(s.nodes[i:i+1], redisproc.Keep)
	}
	s.progress(30)
	s.end()
}

// paused has two masters halted for longer than a lease lasts.
func paused(s *scenario) {
	s.start(4, 4, nil)
	s.progress(30)
	victims := s.nodes[3:]
	s.pause(victims)
	from := client.Now()
	s.pass(2 * ttl)
	s.progressSince(from, 100)
	s.resume(victims)
	s.progress(30)
	s.end()
}

// kill kills nodes, and sees that they are gone.
func (s *scenario) kill(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error {
		id, err := n.Info(s.ctx, "server", "run_id")
		s.mu.Lock()
		s.runID[n] = id
		s.mu.Unlock()
		return errors.Join(err, n.Kill(s.ctx))
	})
	for _, n := range which {
		if n.Answers(s.ctx) {
			s.Fatalf("%s was killed and answers", n.Addr())
		}
	}
	s.happened("%d killed", len(which))
}

// back starts nodes again, and sees that they are others than before. It returns when
// the first of them answered.
func (s *scenario) back(which []*nodes.Node, data redisproc.Data) (first time.Duration) {
	s.Helper()
	var mu sync.Mutex // guards first
	s.all(which, func(n *nodes.Node) error {
		err := n.Restart(s.ctx, data)
		mu.Lock()
		defer mu.Unlock()
		if first == 0 {
			first = client.Now()
		}
		return err
	})
	for _, n := range which {
		id, err := n.Info(s.ctx, "server", "run_id")
		s.must(err)
		if id == s.runID[n] {
			s.Errorf("%s is the same process as before", n.Addr())
		}
	}
	s.happened("%d back", len(which))
	return first
}

// silence is how long a node is given to prove that it does not answer.
const silence = 200 * time.Millisecond

// pause halts nodes, and sees that they do not answer.
func (s *scenario) pause(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error { return n.Pause(s.ctx) })
	s.silent(which)
	s.happened("%d paused", len(which))
}

// silent sees that nodes do not answer.
func (s *scenario) silent(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error {
		inTime, cancel := context.WithTimeout(s.ctx, silence)
		defer cancel()
		if n.Answers(inTime) {
			s.Errorf("%s answers", n.Addr())
		}
		return nil
	})
}

func (s *scenario) resume(which []*nodes.Node) {
	s.Helper()
	s.all(which, func(n *nodes.Node) error { return n.Resume(s.ctx) })
	s.answer(which)
}
