package redlock

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/clock"
)

// Facts are what a node says of itself and what was measured of it. What it
// does not say is empty.
type Facts struct {
	// Server is redis, valkey, or what else the server calls itself, and Version
	// its own. RedisVersion is that of the Redis it is like.
	Server       string `json:"server,omitempty"`
	Version      string `json:"version,omitempty"`
	RedisVersion string `json:"redis_version,omitempty"`

	// RunID names the process.
	RunID string `json:"-"`
	// UptimeS is by the node's wall clock.
	UptimeS int64 `json:"uptime_s"`
	// Role is master or replica.
	Role string `json:"role,omitempty"`
	// Cluster is whether the node is in cluster mode, and ClusterNodes how many
	// nodes it knows there, itself included.
	Cluster      bool `json:"cluster,omitempty"`
	ClusterNodes int  `json:"cluster_nodes,omitempty"`
	// Loading: it is reading its data, and answers little else.
	Loading bool `json:"loading,omitempty"`

	MaxMemory       int64       `json:"maxmemory_bytes"` // 0: no limit
	MaxMemoryPolicy string      `json:"maxmemory_policy,omitempty"`
	Persistence     Persistence `json:"persistence"`

	// RoundTripMS is the shortest of a few round trips.
	RoundTripMS float64 `json:"round_trip_ms"`
	// Clock is what its TIME was against this machine's.
	Clock *ClockFacts `json:"clock,omitempty"`

	// Refused are the commands that the node does not run for this user, of those
	// that were tried, as ACL names them: "client|kill". RefusedKey is why it
	// refuses the key that they were tried on, and RefusedWrites why it writes
	// nothing at present.
	Refused       []string `json:"refused,omitempty"`
	RefusedKey    string   `json:"refused_key,omitempty"`
	RefusedWrites string   `json:"refused_writes,omitempty"`
	// RefusedInfo is why the node says nothing of itself.
	RefusedInfo string `json:"refused_info,omitempty"`
}

// Persistence is what a node keeps on disk. The first three are its
// configuration, in the words of redis.conf; "" is not known.
type Persistence struct {
	AppendOnly       string `json:"appendonly,omitempty"`
	AppendFsync      string `json:"appendfsync,omitempty"`
	NoFsyncOnRewrite string `json:"no_appendfsync_on_rewrite,omitempty"`
	// Save is when snapshots are made, "no" for never.
	Save string `json:"save,omitempty"`
	// Whether the last snapshot, the last write to the append-only file and its
	// last rewrite went well: ok or err.
	LastSave    string `json:"last_save,omitempty"`
	LastAppend  string `json:"last_append,omitempty"`
	LastRewrite string `json:"last_rewrite,omitempty"`
}

// ClockFacts are how a node's clock stands to another.
type ClockFacts struct {
	AheadMS  float64 `json:"ahead_ms"`  // how far it is ahead; negative: behind
	WithinMS float64 `json:"within_ms"` // how wrong that may be: half the round trip
}

// Facts implements Conn.
func (c *redisConn) Facts(ctx context.Context, key string, clk clock.Clock) (*Facts, error) {
	c.calling.Lock()
	defer c.calling.Unlock()
	f := &Facts{}
	err := c.askItself(ctx, f)
	if err == nil {
		err = c.askTime(ctx, clk, f)
	}
	if err == nil { // last: after a refusal to write, go-redis gives the connection up
		err = c.askPermission(ctx, key, f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// settings are what CONFIG GET is asked for.
var settings = []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save"}

// askItself has the node say what it is.
func (c *redisConn) askItself(ctx context.Context, f *Facts) error {
	pipe := c.conn.Pipeline()
	info := pipe.Info(ctx)
	cluster := pipe.ClusterInfo(ctx)
	var config []*redis.MapStringStringCmd
	for _, s := range settings { // before Redis 7, one call takes one name
		config = append(config, pipe.ConfigGet(ctx, s))
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return err
	}
	if err := info.Err(); err != nil {
		f.RefusedInfo = err.Error()
		f.refuse("info", err)
	}
	f.readInfo(fields(info.Val()))
	if f.Cluster {
		f.refuse("cluster|info", cluster.Err())
		f.ClusterNodes, _ = strconv.Atoi(fields(cluster.Val())["cluster_known_nodes"])
	}
	set := make(map[string]string)
	for i, s := range settings {
		f.refuse("config|get", config[i].Err())
		value, known := config[i].Val()[s]
		if s == "save" && known && value == "" {
			value = "no"
		}
		set[s] = value
	}
	f.readConfig(set)
	return nil
}

// readInfo takes what stands in INFO.
func (f *Facts) readInfo(info map[string]string) {
	f.Server, f.RedisVersion = "redis", info["redis_version"]
	f.Version = f.RedisVersion
	if name := info["server_name"]; name != "" && name != "redis" {
		f.Server, f.Version = name, info[name+"_version"]
	}
	if f.Version == "" {
		f.Server = ""
	}
	f.RunID = info["run_id"]
	f.UptimeS, _ = strconv.ParseInt(info["uptime_in_seconds"], 10, 64)
	if f.Role = info["role"]; f.Role == "slave" {
		f.Role = "replica"
	}
	f.Cluster = clustered(info)
	f.Loading = info["loading"] == "1"
	f.MaxMemory, _ = strconv.ParseInt(info["maxmemory"], 10, 64)
	f.MaxMemoryPolicy = info["maxmemory_policy"]
	f.Persistence.LastSave = info["rdb_last_bgsave_status"]
	switch info["aof_enabled"] {
	case "0":
		f.Persistence.AppendOnly = "no"
	case "1":
		f.Persistence.AppendOnly = "yes"
		f.Persistence.LastAppend = info["aof_last_write_status"]
		f.Persistence.LastRewrite = info["aof_last_bgrewrite_status"]
	}
}

// readConfig takes what CONFIG GET says. Of the append-only file INFO knows too,
// and better: whether there is one now, not whether there is to be one.
func (f *Facts) readConfig(set map[string]string) {
	p := &f.Persistence
	if p.AppendOnly == "" {
		p.AppendOnly = set["appendonly"]
	}
	p.AppendFsync = set["appendfsync"]
	p.NoFsyncOnRewrite = set["no-appendfsync-on-rewrite"]
	p.Save = set["save"]
}

// refuse notes that the node does not run a command, if that is what err says.
func (f *Facts) refuse(command string, err error) {
	if refusalOf(err) == refusedCommand && !slices.Contains(f.Refused, command) {
		f.Refused = append(f.Refused, command)
	}
}

// timings is how often a node is asked the time: of that many round trips one is
// likely to have met no delay.
const timings = 5

// askTime measures the round trip, and what the node's clock says.
func (c *redisConn) askTime(ctx context.Context, clk clock.Clock, f *Facts) error {
	best := time.Duration(math.MaxInt64)
	for range timings {
		before := clk.Now()
		node, err := c.conn.Time(ctx).Result()
		if err != nil && !isReply(err) {
			return err
		}
		took := clk.Now().Lower(before)
		if took >= best {
			continue
		}
		best = took
		f.RoundTripMS = inMillis(took)
		if err == nil {
			f.Clock = clockFacts(before.Wall(), took, node)
		}
		f.refuse("time", err)
	}
	return nil
}

// clockFacts are what it means that a node, asked at sent, said that it was node,
// and that this took so long: it looked at its clock some time in between.
func clockFacts(sent time.Time, took time.Duration, node time.Time) *ClockFacts {
	return &ClockFacts{
		AheadMS:  inMillis(node.Sub(sent.Add(took / 2))),
		WithinMS: inMillis(took / 2),
	}
}

// inMillis is d in milliseconds, to the microsecond.
func inMillis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
