// Package client is what works under the lock in these tests: a process of its
// own, so that it can be stopped and killed. It writes down what it does and what
// it is told, and says when it ends whether anything of it is left.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/redlock"
)

// Variable is the environment variable with the settings, in JSON. A program that
// has it is a client; see [Main].
const Variable = "QUORUMLOCK_CLUSTER_CLIENT"

// Settings say what a process does.
type Settings struct {
	First   int // the number of its first client
	Clients int // how many there are, each with a Locker of its own

	Nodes    []string // addresses
	Resource string   // the address of the server that is written to under the lock
	Work     Work     // how
	History  string   // the file to which events are appended

	TTL, MaxTTL time.Duration
	Durable     bool
	Keys        []string
	Hold, Pause time.Duration // the longest of each
	Seed        uint64

	Rate float64       // of the clock of its Lockers; 0 is that of the machine
	Step time.Duration // how far their wall clock is stepped once a second, back and forth
}

// Summary is what a process says when it ends.
type Summary struct {
	Goroutines, Sockets         int    // when nothing had begun
	GoroutinesLeft, SocketsLeft int    // at the end, above that
	Unclosed                    string // what closing complained of
	Steps                       int    // of clocks
	Down                        int    // connections to nodes that ended, or could not be made
}

// settled is how long what ends may take to have ended.
const settled = 10 * time.Second

// Main is a client from beginning to end, which comes with SIGTERM. It does not
// return. Where the variable is not set it does nothing.
func Main() {
	text, is := os.LookupEnv(Variable)
	if !is {
		return
	}
	var s Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fatal(err)
	}
	summary, err := s.run()
	if err != nil {
		fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(summary)
	os.Exit(0)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (s Settings) run() (sum Summary, err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	history, err := os.OpenFile(s.History, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return sum, err
	}
	sum.Goroutines, sum.Sockets = goroutines(), sockets()

	resource := redis.NewClient(&redis.Options{Addr: s.Resource, MaxRetries: -1, PoolSize: s.Clients, PipelinePoolSize: -1})
	var down, steps counter
	var work sync.WaitGroup
	var lockers []*redlock.Locker
	for i := range s.Clients {
		locker, err := s.locker(ctx, &work, &down, &steps)
		if err != nil {
			return sum, err
		}
		lockers = append(lockers, locker)
		w := newWorker(s, s.First+i, locker, resource, history)
		work.Go(func() { w.work(ctx) })
	}
	work.Wait()

	// Of its own time: ctx has ended.
	inTime, cancelClose := context.WithTimeout(context.Background(), settled)
	defer cancelClose()
	var closing error
	for _, l := range lockers {
		closing = errors.Join(closing, l.Close(inTime))
	}
	closing = errors.Join(closing, resource.Close())
	if closing != nil {
		sum.Unclosed = closing.Error()
	}
	sum.Down, sum.Steps = down.count(), steps.count()
	for {
		sum.GoroutinesLeft, sum.SocketsLeft = goroutines()-sum.Goroutines, sockets()-sum.Sockets
		if sum.GoroutinesLeft <= 0 && sum.SocketsLeft <= 0 || inTime.Err() != nil {
			return sum, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// locker makes a Locker, and has its clock do what the settings say until ctx
// ends, as part of work.
func (s Settings) locker(ctx context.Context, work *sync.WaitGroup, down, steps *counter) (*redlock.Locker, error) {
	cfg := redlock.Config{
		TTL: s.TTL, MaxTTL: s.MaxTTL, NodeTimeout: s.TTL / 4, Fenced: true, DurableNodes: s.Durable,
		Trace: &redlock.Trace{Node: func(e redlock.NodeEvent) {
			if !e.Up {
				down.add()
			}
		}},
	}
	if s.Rate != 0 || s.Step != 0 {
		if s.Rate == 0 {
			s.Rate = 1
		}
		skewed := clock.NewSkewed(s.Rate)
		setWall(skewed, 0)
		cfg.Clock = skewed
		work.Go(func() { swing(ctx, skewed, s.Step, steps) })
	}
	nodes := make([]redlock.Node, len(s.Nodes))
	for i, addr := range s.Nodes {
		nodes[i] = redlock.Redis(&redis.Options{Addr: addr})
	}
	return redlock.New(nodes, cfg)
}

// swing steps a wall clock back and forth. In between it is right, whatever the rate
// of the other clocks: those who set it go by it.
func swing(ctx context.Context, c *clock.Skewed, step time.Duration, steps *counter) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for off := step; ; off = step - off {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			setWall(c, off)
			if step != 0 {
				steps.add()
			}
		}
	}
}

// setWall sets a wall clock to what it is, and so much more.
func setWall(c *clock.Skewed, more time.Duration) {
	c.Step(time.Since(c.Now().Wall()) + more)
}
