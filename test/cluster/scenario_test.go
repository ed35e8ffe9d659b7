package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/test/cluster/client"
	"github.com/quorumlock/quorumlock/test/cluster/nodes"
)

// hang is when anything that still has not happened is given up.
const hang = 3 * time.Minute

// TTLs of the scenarios: short, so that what waits for their end does not wait
// for long. need is how long a node that has restarted does not count.
const (
	ttl    = time.Second
	maxTTL = 2 * time.Second
	need   = 5 * time.Second // the least there is with fences
)

func TestMain(m *testing.M) {
	client.Main()
	os.Exit(m.Run())
}

// scenario is a run: nodes, clients, and what happens to them.
type scenario struct {
	*testing.T
	ctx      context.Context
	nodes    []*nodes.Node
	resource *nodes.Node
	durable  bool
	keys     []string
	clients  []*process
	record   *record
	backend  backend
	report   report
	began    time.Duration // when the first clients were started

	timingBroken bool

	mu    sync.Mutex             // guards runID
	runID map[*nodes.Node]string // of nodes that were killed
}

// newScenario starts five nodes and the resource, for a scenario that is to last for
// about so long.
func newScenario(t *testing.T, name string, b backend, durable bool, length time.Duration) *scenario {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), length+2*hang)
	t.Cleanup(cancel)
	s := &scenario{T: t, ctx: ctx, backend: b, durable: durable, record: newRecord(t), runID: map[*nodes.Node]string{}}
	for i := range 12 {
		s.keys = append(s.keys, fmt.Sprint("stock:", i))
	}
	s.nodes, s.resource = b.cluster(t, ctx, durable)
	version, err := s.nodes[0].Version(ctx)
	s.must(err)
	s.report = report{Scenario: name, Backend: b.name, Server: version}
	return s
}

// startAll starts so many nodes at once; they end with the test.
func startAll(t *testing.T, ctx context.Context, b nodes.Backend, durable []bool) []*nodes.Node {
	t.Helper()
	started := make([]*nodes.Node, len(durable))
	errs := make([]error, len(durable))
	var work sync.WaitGroup
	for i := range durable {
		work.Go(func() { started[i], errs[i] = nodes.Start(ctx, b, durable[i]) })
	}
	work.Wait()
	t.Cleanup(func() {
		var work sync.WaitGroup
		for _, n := range started {
			if n != nil {
				work.Go(func() {
					// Not the test's: that may be why it ends.
					ctx, cancel := context.WithTimeout(context.Background(), hang)
					defer cancel()
					if err := n.Close(ctx); err != nil {
						t.Error(err)
					}
				})
			}
		}
		work.Wait()
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return started
}

// another starts a server beside the nodes.
func (s *scenario) another() *nodes.Node {
	s.Helper()
	return startAll(s.T, s.ctx, s.backend.resource, []bool{false})[0]
}

// start starts so many processes of so many clients each.
func (s *scenario) start(processes, each int, change func(*client.Settings)) []*process {
	s.Helper()
	if s.began == 0 {
		s.began = client.Now()
	}
	var addrs []string
	for _, n := range s.nodes {
		addrs = append(addrs, n.Addr())
	}
	// The more there are, the less each does: it is their number that counts, and the
	// machine may be small.
	rest := time.Duration(processes*each) * 25 * time.Millisecond
	var started []*process
	for range processes {
		settings := client.Settings{
			First: s.report.Clients, Clients: each, Resource: s.resource.Addr(), Work: client.Append, History: s.record.file.Name(),
			TTL: ttl, MaxTTL: maxTTL, Durable: s.durable, Keys: s.keys,
			Hold: 10 * time.Millisecond, Pause: max(rest, 200*time.Millisecond), Seed: uint64(s.report.Clients) + 1,
		}
		if change != nil {
			change(&settings)
		}
		s.report.Clients += settings.Clients
		started = append(started, begin(s.T, settings, addrs))
	}
	s.clients = append(s.clients, started...)
	return started
}

// happened notes a fault that has been seen to happen.
func (s *scenario) happened(format string, args ...any) {
	s.report.Faults = append(s.report.Faults, fmt.Sprintf(format, args...))
}

// progress waits until so many more leases have been got.
func (s *scenario) progress(n int) {
	s.Helper()
	s.progressSince(client.Now(), n)
}

func (s *scenario) progressSince(at time.Duration, n int) {
	s.Helper()
	eventually(s.T, fmt.Sprintf("%d leases since %v", n, (at-s.began).Round(time.Millisecond)), func() bool { return s.record.since(at) >= n })
}

// pass lets time go by, in which there is nothing to be waited for but time.
func (s *scenario) pass(d time.Duration) {
	time.Sleep(d)
}

// all does something to each of nodes, at the same time.
func (s *scenario) all(which []*nodes.Node, do func(*nodes.Node) error) {
	s.Helper()
	var work sync.WaitGroup
	errs := make([]error, len(which))
	for i, n := range which {
		work.Go(func() { errs[i] = do(n) })
	}
	work.Wait()
	for _, err := range errs {
		s.must(err)
	}
}

func (s *scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// end ends a run in which nothing may have gone wrong.
func (s *scenario) end() {
	s.Helper()
	s.clean(s.judge())
}

// judge ends the clients, when all nodes are well again, and judges the run.
func (s *scenario) judge() history.Verdict {
	s.Helper()
	took := client.Now() - s.began
	complete := true
	var sums []client.Summary
	for _, p := range s.clients {
		if p.killed {
			complete = false
			continue
		}
		sum := p.end()
		if strings.Contains(sum.Unclosed, "may be left") { // a node did not answer for a TTL: the disk, or the machine, is busy
			s.Logf("clients from %d on: %s", p.First, sum.Unclosed)
			complete, sum.Unclosed = false, ""
		}
		if sum.GoroutinesLeft > 0 || sum.SocketsLeft > 0 || sum.Unclosed != "" {
			s.Errorf("clients from %d on: %d goroutines and %d sockets are left, %s", p.First, sum.GoroutinesLeft, sum.SocketsLeft, sum.Unclosed)
		}
		sums = append(sums, sum)
	}
	run := s.recorded()
	run.Left = s.left(complete)
	run.TimingBroken = s.timingBroken
	for _, n := range s.nodes {
		eventually(s.T, "no connection is left at "+n.Addr(), func() bool {
			count, err := n.Connections(s.ctx)
			return err == nil && count == 0
		})
	}
	s.report.figures(run, s.began, took, sums)
	return run.Judge()
}

// clean takes what is wrong with the run for a failure, and leaves the report.
func (s *scenario) clean(v history.Verdict) {
	s.Helper()
	s.report.verdict(v)
	s.report.leave(s.T)
	for _, fault := range s.report.Wrong {
		s.Error(fault)
	}
}

// recorded is what there is to judge.
func (s *scenario) recorded() history.Run {
	s.Helper()
	s.record.read()
	run, err := history.Recorded(s.record.events)
	s.must(err)
	for _, key := range s.keys {
		log, err := client.Log(s.ctx, s.resource.Admin, key)
		s.must(err)
		run.Log = append(run.Log, log...)
	}
	return run
}

// left is what is left of locks on the nodes. Those of clients that were killed are
// there until their time is over.
func (s *scenario) left(complete bool) (left []history.Left) {
	s.Helper()
	deadline := client.Now()
	if !complete {
		deadline += maxTTL + time.Second
	}
	for {
		left = nil
		for _, n := range s.nodes {
			locks, err := n.Locks(s.ctx)
			s.must(err)
			for _, key := range locks {
				left = append(left, history.Left{Node: n.Addr(), Key: key})
			}
		}
		if len(left) == 0 || client.Now() > deadline {
			return left
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(hang)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is still not so that %s", hang, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
