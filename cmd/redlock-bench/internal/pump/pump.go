// Package pump sends what a lock sends, and does nothing else: blocking sockets,
// prepared bytes, no parsing. How many cycles that does is what a machine
// can do, and each lock's rate is a share of it.
package pump

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Setup says what is pumped. Threads is how many there are, each with a
// connection of its own to every node; Flight is how many keys go out together.
type Setup struct {
	URLs    []string
	Prefix  string // of all keys
	Scheme  Scheme
	Threads int
	Flight  int
}

// hang is how long a node may take to answer.
const hang = 10 * time.Second

// A Pump is connected, and runs from Start to Stop.
type Pump struct {
	setup   Setup
	threads []*thread
	cycles  atomic.Int64
	stop    atomic.Bool
	group   sync.WaitGroup // the threads; Stop waits
	mu      sync.Mutex     // guards err
	err     error
}

// thread is one that sends to all nodes at once and then reads from one after
// the other.
type thread struct {
	pump  *Pump
	nodes []*socket
	steps []step
	input []byte
}

// step is a flight and what every node answers to it.
type step struct{ request, answer []byte }

// Open connects to the nodes and sees that each answers as it should. Only nodes
// that are reached by TCP without TLS can be pumped.
func Open(s Setup) (*Pump, error) {
	p := &Pump{setup: s}
	for i := range s.Threads {
		t := &thread{pump: p, steps: s.Scheme.steps(s.Prefix, i, s.Flight)}
		p.threads = append(p.threads, t)
		longest := 0
		for _, st := range t.steps {
			longest = max(longest, len(st.answer))
		}
		t.input = make([]byte, longest)
		for _, u := range s.URLs {
			node, err := dial(u, s.Scheme.scripts)
			if err != nil {
				p.Close()
				return nil, err
			}
			t.nodes = append(t.nodes, node)
		}
		if err := t.once(); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// Start lets it run.
func (p *Pump) Start() {
	for _, t := range p.threads {
		p.group.Go(t.run)
	}
}

// Cycles is how many have been done so far.
func (p *Pump) Cycles() int64 { return p.cycles.Load() }

// Stop ends it, and says what went wrong while it ran.
func (p *Pump) Stop() error {
	p.stop.Store(true)
	p.group.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Close closes the connections. Nothing runs any more.
func (p *Pump) Close() {
	for _, t := range p.threads {
		for _, n := range t.nodes {
			n.close()
		}
	}
}

func (t *thread) run() {
	for !t.pump.stop.Load() {
		if err := t.once(); err != nil {
			t.pump.mu.Lock()
			t.pump.err = errors.Join(t.pump.err, err)
			t.pump.mu.Unlock()
			return
		}
		t.pump.cycles.Add(int64(t.pump.setup.Flight))
	}
}

// once acquires and releases a flight of keys.
func (t *thread) once() error {
	for _, s := range t.steps {
		for _, n := range t.nodes {
			if err := n.write(s.request); err != nil {
				return err
			}
		}
		for _, n := range t.nodes {
			got := t.input[:len(s.answer)]
			if err := n.read(got); err != nil {
				return err
			}
			if !bytes.Equal(got, s.answer) {
				return fmt.Errorf("pump: %q was answered where %q should be", shortened(got), shortened(s.answer))
			}
		}
	}
	return nil
}

func shortened(b []byte) []byte { return b[:min(len(b), 60)] }
