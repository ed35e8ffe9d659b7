package redlock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/quorum"
)

// Of a script that was refused as a whole it is known that it has done nothing,
// and nothing is released on its account. So it must be true: here of everything
// that can be brought about on a real server.
func TestRefusedScriptHasDoneNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string // the server's
		begin func(t *testing.T, s *realServer)
		end   func(t *testing.T, s *realServer)
		want  string
		// extends: they are refused too, not only what needs memory.
		extends bool
	}{
		"replica": {
			begin:   func(t *testing.T, s *realServer) { s.do(t, "replicaof", "127.0.0.1", 1) },
			end:     func(t *testing.T, s *realServer) { s.do(t, "replicaof", "no", "one") },
			want:    "READONLY",
			extends: true,
		},
		"replica without its master": {
			begin: func(t *testing.T, s *realServer) {
				s.do(t, "config", "set", "replica-serve-stale-data", "no")
				s.do(t, "replicaof", "127.0.0.1", 1)
			},
			end:     func(t *testing.T, s *realServer) { s.do(t, "replicaof", "no", "one") },
			want:    "MASTERDOWN",
			extends: true,
		},
		"too few replicas": {
			begin:   func(t *testing.T, s *realServer) { s.do(t, "config", "set", "min-replicas-to-write", 1) },
			end:     func(t *testing.T, s *realServer) { s.do(t, "config", "set", "min-replicas-to-write", 0) },
			want:    "NOREPLICAS",
			extends: true,
		},
		"out of memory": {
			begin: func(t *testing.T, s *realServer) { s.do(t, "config", "set", "maxmemory", 1) },
			end:   func(t *testing.T, s *realServer) { s.do(t, "config", "set", "maxmemory", 0) },
			want:  "OOM",
		},
		"no snapshots": {
			begin: func(t *testing.T, s *realServer) {
				dir := s.admin.ConfigGet(context.Background(), "dir").Val()["dir"]
				// There is no renaming a file to the name of a directory with something in it.
				if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "x"), 0o700); err != nil {
					t.Fatal(err)
				}
				s.do(t, "config", "set", "save", "3600 1")
				s.do(t, "bgsave")
				eventually(t, "the snapshot has failed", true, func() bool {
					info, _ := s.do(t, "info", "persistence").(string)
					return strings.Contains(info, "rdb_last_bgsave_status:err")
				})
			},
			end:     func(t *testing.T, s *realServer) { s.do(t, "config", "set", "stop-writes-on-bgsave-error", "no") },
			want:    "MISCONF",
			extends: true,
		},
		"another's script": {
			begin: func(t *testing.T, s *realServer) {
				s.do(t, "config", "set", "lua-time-limit", 1)
				endless := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, ReadTimeout: hang})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					endless.Eval(context.Background(), "while true do end", nil)
				}()
				t.Cleanup(func() {
					<-ended
					endless.Close()
				})
				eventually(t, "it is busy", true, func() bool {
					return redis.HasErrorPrefix(s.admin.Ping(context.Background()).Err(), "BUSY")
				})
			},
			end: func(t *testing.T, s *realServer) {
				s.do(t, "script", "kill")
				eventually(t, "it is idle", nil, func() error { return s.admin.Ping(context.Background()).Err() })
			},
			want:    "BUSY",
			extends: true,
		},
		"cluster without slots": { // it holds nothing before
			args:    []string{"--cluster-enabled", "yes", "--cluster-port"},
			begin:   func(t *testing.T, s *realServer) {},
			end:     func(t *testing.T, s *realServer) {},
			want:    "CLUSTERDOWN",
			extends: true,
		},
		"no permission for keys of this name": {
			begin: func(t *testing.T, s *realServer) {
				s.do(t, "acl", "setuser", "default", "resetkeys", "~free", "~held", "~own")
			},
			end:     func(t *testing.T, s *realServer) { s.do(t, "acl", "setuser", "default", "~*") },
			want:    "NOPERM", // it may be about one of the keys: not for sure
			extends: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := test.args
			if args != nil {
				bus, _ := freePort(t, "127.0.0.1")
				args = append(args, bus)
			}
			s := startServer(t, redisproc.Options{Args: args})
			ctx, cancel := context.WithTimeout(context.Background(), hang)
			defer cancel()
			c, err := s.node().Connect(ctx, hang)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			now := micros()
			// A connection that has sent everything before, so that scripts are known.
			mustSend(t, c, fencedOp(acquireOp("own", "t", time.Hour), now), stampOp("own", "t", now), fencedOp(extendOp("own", "t", time.Minute), 0))
			mustSend(t, c, fencedOp(acquireOp("held", "other", time.Hour), now))
			before := everything(t, s)

			test.begin(t, s)
			longer := fencedOp(extendOp("own", "t", 100*time.Hour), 0)
			longer.CounterTTL = 100 * time.Hour
			flight := flightOf(
				fencedOp(acquireOp("free", "t", time.Hour), now+7), fencedOp(acquireOp("own", "t", time.Hour), now+7),
				fencedOp(acquireOp("held", "t", time.Hour), now+7), fencedOp(acquireOp("free too", "t", time.Hour), now+7),
				stampOp("own", "t", now+8), longer)
			c.Send(ctx, flight) // go-redis ends the connection after some of these errors
			test.end(t, s)
			for _, op := range flight {
				r := op.Reply
				fails := op.Kind != OpExtend || test.extends
				if got := fmt.Sprint(r.Err); fails && (r.Vote != quorum.Unknown || !strings.Contains(got, test.want)) || !fails && r.Vote != quorum.Granted {
					t.Errorf("%v of %q: %+v, want %s", op.Kind, op.Key, r, test.want)
				}
				if sure := op.Kind == OpAcquire && test.want != "NOPERM"; r.Nothing != sure {
					t.Errorf("%v of %q has done nothing for sure: %v", op.Kind, op.Key, r.Nothing)
				}
			}
			after := everything(t, s)
			for key, was := range before {
				extended := !test.extends && strings.HasPrefix(key, "own")
				if is := after[key]; is == nil || is.value != was.value || is.left > was.left != extended {
					t.Errorf("%q was %+v and is %+v", key, was, is)
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d keys, were %d", len(after), len(before))
			}
		})
	}
}

// stored is what a server stores under a key.
type stored struct {
	value string
	left  time.Duration
}

// everything is all that the server stores.
func everything(t *testing.T, s *realServer) map[string]*stored {
	t.Helper()
	all := map[string]*stored{}
	for _, key := range s.keys(t) {
		value, _ := s.do(t, "get", key).(string)
		left, _ := s.do(t, "pttl", key).(int64)
		all[key] = &stored{value, time.Duration(left) * time.Millisecond}
	}
	return all
}

// A script that fails in the middle has done its work for some of its keys, and
// does not count as one that has done nothing.
func TestScriptThatFailsHalfWayMayHaveDoneSomething(t *testing.T) {
	t.Parallel()
	s := startServer(t, redisproc.Options{})
	// EXISTS is asked only of a counter that is not there, or is no string.
	s.permit(t, slices.Concat(needed, useful, []string{"+time"})...)
	now := micros()
	s.do(t, "set", counterOf("first"), now.String())
	c := dialConn(t, s.node(), hang)
	flight := mustSend(t, c, fencedOp(acquireOp("first", "t", time.Hour), now), fencedOp(acquireOp("second", "t", time.Hour), now))
	if s.do(t, "get", "first") != "t" {
		t.Error("the first is not set: the test shows nothing")
	}
	for _, op := range flight {
		if r := op.Reply; r.Vote != quorum.Unknown || r.Nothing || !saysSo(r.Err) {
			t.Errorf("%q: %+v", op.Key, r)
		}
	}
}
