package redlock

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/respfake"
)

func TestInfoIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		info, config string
		want         Facts
	}{
		"nothing": {"", "", Facts{}},
		"redis 6.2, a replica that is loading": {
			"# Server\r\nredis_version:6.2.14\r\nredis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:7\r\n" +
				"# Persistence\r\nloading:1\r\nrdb_last_bgsave_status:err\r\naof_enabled:0\r\naof_last_write_status:ok\r\n" +
				"# Replication\r\nrole:slave\r\nmaster_replid:def\r\n# Memory\r\nmaxmemory:1024\r\nmaxmemory_policy:allkeys-lru\r\n",
			"",
			Facts{
				Server: "redis", Version: "6.2.14", RedisVersion: "6.2.14", RunID: "abc", UptimeS: 7, Role: "replica",
				Loading: true, MaxMemory: 1024, MaxMemoryPolicy: "allkeys-lru", Persistence: Persistence{AppendOnly: "no", LastSave: "err"},
			},
		},
		"valkey, in a cluster, on disk": {
			"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\ncluster_enabled:1\r\nrun_id:abc\r\nuptime_in_seconds:-3\r\n" +
				"loading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\naof_last_write_status:ok\r\naof_last_bgrewrite_status:err\r\nrole:master\r\n",
			"appendonly:no\r\nappendfsync:always\r\nno-appendfsync-on-rewrite:no\r\nsave:3600 1 300 100",
			Facts{
				Server: "valkey", Version: "9.1.2", RedisVersion: "7.2.4", RunID: "abc", UptimeS: -3, Role: "master", Cluster: true,
				Persistence: Persistence{
					AppendOnly: "yes", AppendFsync: "always", NoFsyncOnRewrite: "no", Save: "3600 1 300 100", LastSave: "ok", LastAppend: "ok", LastRewrite: "err",
				},
			},
		},
		"no INFO":            {"", "appendonly:yes\r\nappendfsync:everysec", Facts{Persistence: Persistence{AppendOnly: "yes", AppendFsync: "everysec"}}},
		"another's own name": {"redis_version:7.4.0\r\nserver_name:redis\r\n", "", Facts{Server: "redis", Version: "7.4.0", RedisVersion: "7.4.0"}},
		"numbers that are none": {"redis_version:7.4.0\r\nuptime_in_seconds:x\r\nmaxmemory:much\r\nloading\r\n", "", Facts{
			Server: "redis", Version: "7.4.0", RedisVersion: "7.4.0",
		}},
	} {
		var got Facts
		got.readInfo(fields(test.info))
		got.readConfig(fields(test.config))
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, test.want)
		}
	}
}

// A server's error is about permission, about the key, about its state, or about
// what was asked, in the words of every version.
func TestRefusalsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		rdb := bystander(t, s)
		for text, want := range map[string]refusal{
			"NOPERM this user has no permissions to run the 'get' command or its subcommand":       refusedCommand,
			"NOPERM this user has no permissions to run the 'client|kill' command":                 refusedCommand,
			"NOPERM User locker has no permissions to run the 'get' command":                       refusedCommand,
			"ERR unknown command 'CONFIG', with args beginning with: 'get' 'save' ":                refusedCommand,
			"ERR unknown command `CONFIG`, with args beginning with: `get`, ":                      refusedCommand,
			"ERR unknown subcommand 'kill'. Try CLIENT HELP.":                                      refusedCommand,
			"ERR Unknown subcommand or wrong number of arguments for 'kill'. Try CLIENT HELP.":     refusedCommand,
			"NOPERM this user has no permissions to access one of the keys used as arguments":      refusedKey,
			"NOPERM No permissions to access a key":                                                refusedKey,
			"ERR syntax error":                                                                     refusedNothing,
			"ERR value is not an integer or out of range":                                          refusedNothing,
			"ERR client-id should be greater than 0":                                               refusedNothing,
			"NOSCRIPT No matching script. Please use EVAL.":                                        refusedNothing,
			"WRONGTYPE Operation against a key holding the wrong kind of value":                    refusedNothing,
			"MOVED 3999 127.0.0.1:6381":                                                            refusedNothing,
			"READONLY You can't write against a read only replica.":                                refusedState,
			"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to":      refusedState,
			"OOM command not allowed when used memory > 'maxmemory'.":                              refusedState,
			"NOREPLICAS Not enough good replicas to write.":                                        refusedState,
			"LOADING Redis is loading the dataset in memory":                                       refusedState,
			"CLUSTERDOWN The cluster is down":                                                      refusedState,
			"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":     refusedState,
			"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSA.": refusedState,
		} {
			s.Reply("get", text)
			if got := refusalOf(rdb.Get(t.Context(), "k").Err()); got != want {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
		}
		for _, err := range []error{nil, redis.Nil, errors.New("reset by peer")} {
			if got := refusalOf(err); got != refusedNothing {
				t.Errorf("%v: %d", err, got)
			}
		}
	})
}

// What the round trip leaves open about a node's clock is told with it.
func TestClocksAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		s.Lag(30 * time.Millisecond)
		clk := clock.NewSkewed(1)
		clk.Step(-2 * time.Second)
		f, err := c.Facts(t.Context(), "k", clk)
		if err != nil {
			t.Fatal(err)
		}
		// The node looked at its clock at the beginning of the round trip, and as
		// far as the client can tell in the middle.
		if want := (ClockFacts{AheadMS: 1985, WithinMS: 15}); f.RoundTripMS != 30 || f.Clock == nil || *f.Clock != want {
			t.Errorf("round trip %v ms, clock %+v, want %+v", f.RoundTripMS, f.Clock, want)
		}
	})
}

// Asking changes nothing on a node, and stays on its one connection.
func TestAskingForFactsLeavesNothing(t *testing.T) {
	for name, o := range map[string]respfake.Options{
		"7.0": {}, "6.2": {Version: "6.2.14"}, "8.0": {Version: "8.0.0"}, "cluster": {Cluster: true}, "RESP2": {NoHello: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, o)
				s.Do(0, func(tx *respfake.Tx) { tx.Push("theirs", "v") })
				c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
				f, err := c.Facts(t.Context(), "nobody's", clock.NewSkewed(1))
				if err != nil {
					t.Fatal(err)
				}
				if len(f.Refused) > 0 && !strings.HasPrefix(f.Refused[0], "cluster|") || f.RefusedKey+f.RefusedWrites+f.RefusedInfo != "" || f.RunID == "" || f.Role != "master" || f.MaxMemoryPolicy != "noeviction" {
					t.Errorf("%+v", f)
				}
				if got := keysOn(s); len(got) != 1 || got[0] != "theirs" {
					t.Errorf("the node holds %q", got)
				}
				if s.Accepted() != 1 {
					t.Errorf("%d connections", s.Accepted())
				}
			})
		})
	}
}
