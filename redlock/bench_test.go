package redlock

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// willing is a node that grants everything at once: what is left is the library's
// own work.
type willing string

func (w willing) String() string                                       { return string(w) }
func (w willing) Connect(context.Context, time.Duration) (Conn, error) { return willingConn(w), nil }

type willingConn string

func (w willingConn) Peer() Peer                        { return Peer{ID: 1, RunID: string(w), Uptime: time.Hour} }
func (w willingConn) Gather()                           { runtime.Gosched() }
func (w willingConn) Kill(context.Context, int64) error { return nil }
func (w willingConn) Close() error                      { return nil }

func (w willingConn) Send(_ context.Context, flight []*Op) error {
	for _, op := range flight {
		op.Reply = Reply{Vote: quorum.Granted, Fence: op.Fence}
	}
	return nil
}

func (w willingConn) Facts(context.Context, string, clock.Clock) (*Facts, error) {
	return &Facts{}, nil
}

// BenchmarkAttempt is an acquire and its release on five nodes that take no time, by
// one goroutine and by 64 for each processor.
func BenchmarkAttempt(b *testing.B) {
	var nodes []Node
	for i := range 5 {
		nodes = append(nodes, willing(fmt.Sprint("node ", i)))
	}
	for _, fenced := range []bool{false, true} {
		l, err := New(nodes, Config{Fenced: fenced, DurableNodes: true})
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close(context.Background())
		cycle := func(b *testing.B, key string) {
			lease, err := l.TryAcquire(b.Context(), key)
			if err == nil {
				err = lease.Release(b.Context())
			}
			if err != nil {
				b.Error(err)
			}
		}
		b.Run(fmt.Sprintf("sequential fenced=%t", fenced), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, "k")
			}
		})
		b.Run(fmt.Sprintf("parallel fenced=%t", fenced), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64)
			var workers atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprint(workers.Add(1))
				for pb.Next() {
					cycle(b, key)
				}
			})
		})
	}
}

// BenchmarkLane is one operation's way through a lane: queued, carried, answered.
func BenchmarkLane(b *testing.B) {
	l := runLane(b, willing("node"), clock.System{}, time.Second)
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := newRound(1, Op{Kind: OpAcquire, Key: "k", Token: "t"}, clock.System{}.Now())
			decided := make(chan struct{}, 1)
			r.tell(decided)
			r.send([]*lane{l})
			<-decided
		}
	})
}

// BenchmarkWire is a flight through go-redis and a server in this process, whose work
// is counted too: so many acquires, and then their releases.
func BenchmarkWire(b *testing.B) {
	for _, depth := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			_, nodes := respNodes(b, 1, respfake.Options{})
			conn := dialConn(b, nodes[0], time.Minute)
			var acquires, releases []*Op
			for i := range depth {
				key, token := fmt.Sprint("key", i), Token(fmt.Sprint("token", i))
				acquire, release := acquireOp(key, token, time.Minute), releaseOp(key, token)
				acquires, releases = append(acquires, &acquire), append(releases, &release)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, flight := range [][]*Op{acquires, releases} {
					if err := conn.Send(b.Context(), flight); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*depth*b.N), "ns/operation")
		})
	}
}
