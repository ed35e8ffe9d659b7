package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/test/cluster/client"
)

// late has a client stopped between its look at the lease and its write, until
// others have written. Its write is refused, and nothing is lost.
func late(s *scenario) {
	s.writeLate(client.Update)
	v := s.judge()
	s.clean(v)
}

// careless is the same where nobody checks fences: what others have written is
// lost, or fences would be of no use.
func careless(s *scenario) {
	s.writeLate(client.Careless)
	v := s.judge()
	lost := 0
	for _, m := range v.Misplaced {
		if strings.HasSuffix(m.What, "and it is not") {
			lost++
		}
	}
	if lost == 0 {
		s.Error("no update was lost")
	}
	s.happened("%d updates lost", lost)
	v.Misplaced = nil // that was shown; all else is to be in order
	s.clean(v)
}

// writeLate has the client that does so.
func (s *scenario) writeLate(work client.Work) {
	s.Helper()
	s.keys = s.keys[:1]
	s.start(1, 1, func(c *client.Settings) { c.Work, c.Hold = work, 400*time.Millisecond })
	s.start(2, 2, func(c *client.Settings) { c.Work = work })
	victim := s.clients[0]

	// It is stopped where it is known to have begun to write, and not to have
	// written.
	var writing history.Event
	for s.record.read(); ; {
		eventually(s.T, "the client writes", func() bool {
			fresh := s.record.read()
			i := slices.IndexFunc(fresh, func(e history.Event) bool { return e.Client == 0 && e.Op == history.OpAppend && e.Outcome == "" })
			if i >= 0 {
				writing = fresh[i]
			}
			return i >= 0
		})
		victim.stop()
		if len(s.outcome(writing)) == 0 && !s.written(writing) {
			break
		}
		victim.cont()
	}
	stopped := client.Now()
	s.progressSince(stopped, 5)
	if !victim.halted() {
		s.Fatal("the client was to stand still")
	}
	s.happened("a client stood still for %v, with a lease of %v", ms(client.Now()-stopped), ttl)
	victim.cont()
	var outcome []history.Outcome
	eventually(s.T, "the client has written", func() bool {
		outcome = s.outcome(writing)
		return len(outcome) > 0
	})
	want := history.Fail
	if work == client.Careless {
		want = history.OK
	}
	if outcome[0] != want {
		s.Errorf("the late write was answered %q, want %q", outcome[0], want)
	}
	s.happened("its write: %s", outcome[0])
	s.progress(5)
}

// written reports whether what a client that stands still had sent is in its list.
func (s *scenario) written(what history.Event) (written bool) {
	for range 2 { // one round of the server's loop, whatever the order of connections in it
		log, err := client.Log(s.ctx, s.resource.Admin, what.Key)
		s.must(err)
		written = slices.ContainsFunc(log, func(e history.Entry) bool { return e.Element == what.Element })
	}
	return written
}

// outcome is what became of a write so far.
func (s *scenario) outcome(of history.Event) (outcome []history.Outcome) {
	s.record.read()
	for _, e := range s.record.events {
		if e.Element == of.Element && e.Outcome != "" {
			outcome = append(outcome, e.Outcome)
		}
	}
	return outcome
}

// holderKilled has clients killed between acquire and release.
func holderKilled(s *scenario) {
	s.start(2, 4, nil)
	for range 3 {
		s.killHolder()
	}
	s.progress(50)
	s.end()
}

// killHolder starts a client, and kills it while it holds.
func (s *scenario) killHolder() {
	s.Helper()
	for {
		victim := s.start(1, 1, func(c *client.Settings) { c.Hold = ttl })[0]
		eventually(s.T, fmt.Sprintf("client %d holds", victim.First), func() bool {
			s.record.read()
			return s.last(victim.First).Outcome == history.OK && s.last(victim.First).Op == history.OpAcquire
		})
		victim.kill()
		s.record.read()
		if e := s.last(victim.First); e.Op == history.OpAcquire || e.Op == history.OpAppend {
			s.happened("the holder of %s killed", e.Key)
			return
		}
	}
}

// last is the last that a client has written down.
func (s *scenario) last(number int) (last history.Event) {
	for _, e := range s.record.events {
		if e.Client == number {
			last = e
		}
	}
	return last
}
