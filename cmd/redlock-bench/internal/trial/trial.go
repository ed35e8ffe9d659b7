package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

// settling is how long after the last release nodes may still be at it before a
// key that is there counts as left behind.
const settling = 300 * time.Millisecond

// closing is how long an implementation may take to close.
const closing = 5 * time.Second

// site is where a task is done.
type site struct {
	Task
	do      Do
	lockers []rival.Locker
	servers servers
	meter   meter
}

// Do has something done to nodes, and returns when it has happened.
type Do func(act string, nodes []int) error

// Run does a task. do is called for what is to happen to nodes. When ctx ends it
// stops early, with an error; what is held is released first, unless that hangs.
func Run(ctx context.Context, t Task, do Do) (f Figures, err error) {
	if t.Mode == Limit {
		return runLimit(ctx, t)
	}
	lock, known := rival.Named(t.Rival)
	if !known {
		return f, fmt.Errorf("no implementation is called %q", t.Rival)
	}
	s := &site{Task: t, do: do}
	if s.servers, err = connect(t.URLs); err != nil {
		return f, err
	}
	defer s.servers.close()
	s.meter = meter{servers: s.servers, pids: t.PIDs, helper: t.Helper}
	if lock.Single {
		// The other servers have nothing to do, and no share in the cost.
		s.meter.servers, s.meter.pids = s.servers[:1], t.PIDs[:min(1, len(t.PIDs))]
	}
	if t.Mode == Alive {
		f, err = s.keep(ctx, lock)
	} else if err = s.open(lock); err == nil {
		f, err = s.load(ctx)
	}
	if err == nil {
		wait(ctx, settling)
		f.Left = s.alive().left(ctx, t.Prefix)
	}
	// What closing complains of is no reason to throw the figures away.
	if closing := s.close(); closing != nil {
		f.Closing = closing.Error()
	}
	return f, err
}

// open connects the lockers that the workers share.
func (s *site) open(lock rival.Lock) error {
	for range max(1, s.Lockers) {
		l, err := lock.Open(rival.Site{URLs: s.URLs, Prefix: s.Prefix, Fresh: s.Fresh, TTL: s.TTL, Lead: s.lead()})
		if err != nil {
			return err
		}
		s.lockers = append(s.lockers, l)
	}
	return nil
}

func (s *site) lead() time.Duration { return time.Duration(s.LeadMS * float64(time.Millisecond)) }

// load puts a load on the lockers.
func (s *site) load(ctx context.Context) (Figures, error) {
	switch s.Mode {
	case Uncontended, RTT:
		return s.uncontended(ctx)
	case Contended:
		return s.contended(ctx)
	case Fault:
		return s.fault(ctx)
	}
	return Figures{}, fmt.Errorf("no mode is called %q", s.Mode)
}

// alive are the servers that have not been killed.
func (s *site) alive() (all servers) {
	for i, c := range s.servers {
		if s.Act != Kill || !slices.Contains(s.Nodes, i) {
			all = append(all, c)
		}
	}
	return all
}

// close closes all lockers, and leaves those that hang to the end of the
// process.
func (s *site) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	done := make(chan error, len(s.lockers))
	for _, l := range s.lockers {
		go func() { done <- l.Close(ctx) }()
	}
	var errs []error
	for range s.lockers {
		select {
		case err := <-done:
			errs = append(errs, err)
		case <-ctx.Done():
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}
