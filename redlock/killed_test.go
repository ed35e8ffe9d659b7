package redlock

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// victimNodes is the environment variable that has this test be the process that is
// killed: it names the servers, and the process.
const victimNodes = "REDLOCK_VICTIM"

// Processes that are killed at any moment while they acquire, hold and renew leave no
// key without an end: the locks go with their TTL and nothing else was kept, but for
// the counters of fences, which have an end of their own.
//
// field-reports: 64, 95
func TestAKilledProcessLeavesNoKeyWithoutAnEnd(t *testing.T) {
	if settings := os.Getenv(victimNodes); settings != "" {
		victim(strings.Split(settings, ","))
	}
	t.Parallel()
	servers, nodes := startServers(t, 3)
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	const children, atOnce = 40, 4
	var wg sync.WaitGroup
	var mu sync.Mutex // guards what follows
	names, left := map[string]bool{}, 0
	look := func() (locks int) {
		for i, s := range servers {
			for _, key := range s.keys(t) {
				if ttl := s.do(t, "pttl", key).(int64); ttl == -1 {
					t.Errorf("node %d keeps %q for ever", i+1, key)
				}
				if !strings.Contains(key, fenceMark) {
					names[key] = true
					locks++
				}
			}
		}
		return locks
	}
	for c := range atOnce {
		draw := rand.New(rand.NewPCG(64, uint64(c)))
		wg.Go(func() {
			for i := range children / atOnce {
				child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
				child.Env = append(os.Environ(), fmt.Sprintf("%s=%s,victim %d.%d", victimNodes, strings.Join(addrs, ","), c, i))
				child.Stderr = os.Stderr
				out, err := child.StdoutPipe()
				if err == nil {
					err = child.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
					t.Errorf("the child says %q, %v", line, err)
				}
				time.Sleep(time.Duration(draw.IntN(5000)) * time.Microsecond) // any moment
				child.Process.Kill()
				child.Wait() // that it was killed is what it says
				mu.Lock()
				left += look()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if left == 0 || len(names) < children/4 {
		t.Errorf("%d keys were seen, with %d names: the test shows little", left, len(names))
	}
	eventually(t, "locks that are left", 0, look)
	l := onServers(t, nodes, patient())
	for name := range names {
		lease, err := l.TryAcquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// victim acquires one key after another until it is killed. Every other one has
// fences.
func victim(settings []string) {
	var nodes []string
	for _, addr := range settings[:3] {
		nodes = append(nodes, "redis://"+addr)
	}
	for fenced := true; ; fenced = !fenced {
		l, err := Dial(nodes, Config{DurableNodes: true, TTL: 500 * time.Millisecond, Fenced: fenced, Clock: clock.System{}})
		if err != nil {
			panic(err)
		}
		if fenced { // the connections of the other begin while it is said
			if _, err := l.Acquire(context.Background(), settings[3]); err == nil {
				fmt.Println("ready")
			}
		}
		for i := range 20 {
			if lease, err := l.TryAcquire(context.Background(), fmt.Sprint(settings[3], " ", fenced, i)); err == nil {
				lease.KeepAlive()
			}
		}
	}
}
