package redlock

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/quorum"
)

// What real servers say when they are not well is what the tests of replies
// suppose.
//
// field-reports: 50, 81
func TestServersThatAreNotWellSaySo(t *testing.T) {
	t.Parallel()
	writes := []OpKind{OpAcquire, OpExtend, OpRelease}
	for name, test := range map[string]struct {
		args    []string // the server's
		begin   func(t *testing.T, s *realServer)
		end     func(t *testing.T, s *realServer)
		want    string
		failing []OpKind
	}{
		"replica": {
			begin:   func(t *testing.T, s *realServer) { s.do(t, "replicaof", "127.0.0.1", 1) },
			end:     func(t *testing.T, s *realServer) { s.do(t, "replicaof", "no", "one") },
			want:    "READONLY",
			failing: writes,
		},
		"too few replicas": {
			begin:   func(t *testing.T, s *realServer) { s.do(t, "config", "set", "min-replicas-to-write", 1) },
			end:     func(t *testing.T, s *realServer) { s.do(t, "config", "set", "min-replicas-to-write", 0) },
			want:    "NOREPLICAS",
			failing: writes,
		},
		"out of memory": {
			begin:   func(t *testing.T, s *realServer) { s.do(t, "config", "set", "maxmemory", 1) },
			end:     func(t *testing.T, s *realServer) { s.do(t, "config", "set", "maxmemory", 0) },
			want:    "OOM",
			failing: []OpKind{OpAcquire}, // so that what is held can be let go
		},
		"no permission": {
			begin: func(t *testing.T, s *realServer) {
				s.do(t, "acl", "setuser", "default", "-@all", "+acl", "+ping", "+flushall")
			},
			end:     func(t *testing.T, s *realServer) { s.do(t, "acl", "setuser", "default", "+@all") },
			want:    "NOPERM",
			failing: []OpKind{OpAcquire, OpExtend, OpInspect, OpRelease},
		},
		"cluster without slots": {
			args:    []string{"--cluster-enabled", "yes"},
			begin:   func(t *testing.T, s *realServer) {},
			want:    "CLUSTERDOWN",
			failing: []OpKind{OpAcquire, OpExtend, OpInspect, OpRelease},
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := test.args
			if args != nil {
				bus, _ := freePort(t, "127.0.0.1")
				args = append(args, "--cluster-port", bus)
			}
			s := startServer(t, redisproc.Options{Args: args})
			ctx, cancel := context.WithTimeout(context.Background(), hang)
			defer cancel()
			// The extension is by more than the key has, or the script writes nothing
			// if it runs within the millisecond, and a replica is content.
			send := func(c Conn) ([]*Op, error) {
				flight := flightOf(acquireOp("a", "t", time.Hour), acquireOp("b", "t", time.Hour),
					extendOp("held", "t", 2*time.Hour), inspectOp("held"), releaseOp("held", "t"), releaseOp("none", "t"))
				return flight, c.Send(ctx, flight)
			}
			c, err := s.node().Connect(ctx, hang)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if test.end != nil {
				if _, err := send(c); err != nil { // loads the scripts
					t.Fatal(err)
				}
				mustSend(t, c, releaseOp("a", "t"), releaseOp("b", "t"), acquireOp("held", "t", time.Hour))
			}
			test.begin(t, s)
			flight, _ := send(c)
			for _, op := range flight {
				r := op.Reply
				if fails := slices.Contains(test.failing, op.Kind); fails && (r.Vote != quorum.Unknown || r.Err == nil || !strings.Contains(r.Err.Error(), test.want)) ||
					!fails && (r.Vote == quorum.Unknown || r.Err != nil) {
					t.Errorf("%v: %s", op.Kind, answers(flightOf(*op)))
				}
			}
			if test.end == nil {
				return
			}
			test.end(t, s)
			again, err := s.node().Connect(ctx, hang)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if flight, err := send(again); err != nil || strings.Contains(answers(flight), "unknown") {
				t.Errorf("afterwards: %s, %v", answers(flight), err)
			}
		})
	}
}
