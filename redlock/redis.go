package redlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout is how long connecting to a node may take, logging in included,
// where redis.Options do not say.
const dialTimeout = time.Second

// Redis returns the node at opts: a Redis or Valkey master, version 6.2 or
// later. It has connections of its own, so an application's busy pool never
// delays a renewal, and takes from opts only how to connect: network, address,
// dialer, DialTimeout, TLS, credentials, database, client name, protocol, and
// OnConnect, which runs first on every new connection. Timeouts, retries and
// pool sizes are the lock's own. Redis(nil) is nil, which New refuses.
func Redis(opts *redis.Options) Node {
	if opts == nil {
		return nil
	}
	n := &redisNode{opts: redis.Options{
		Network:                      opts.Network,
		Addr:                         opts.Addr,
		Dialer:                       opts.Dialer,
		DialTimeout:                  opts.DialTimeout,
		TLSConfig:                    opts.TLSConfig,
		Username:                     opts.Username,
		Password:                     opts.Password,
		CredentialsProvider:          opts.CredentialsProvider,
		CredentialsProviderContext:   opts.CredentialsProviderContext,
		StreamingCredentialsProvider: opts.StreamingCredentialsProvider,
		DB:                           opts.DB,
		ClientName:                   opts.ClientName,
		IdentitySuffix:               opts.IdentitySuffix,
		DisableIdentity:              opts.DisableIdentity,
		Protocol:                     opts.Protocol,
		OnConnect:                    opts.OnConnect,

		// One connection, and never a second: order is everything.
		PoolSize:         1,
		PipelinePoolSize: -1,
		// Nothing is sent twice behind the lane's back.
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		// The connection lives until it fails.
		ConnMaxIdleTime:          -1,
		ConnMaxLifetime:          -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}}
	o := &n.opts
	if o.Addr == "" {
		o.Addr = "localhost:6379"
	}
	if o.Network == "" {
		o.Network = "tcp"
		if strings.HasPrefix(o.Addr, "/") {
			o.Network = "unix"
		}
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = dialTimeout
	}
	if o.Protocol == 0 {
		o.Protocol = 2 // nothing here needs pushes
	}
	return n
}

// redisNode is a Redis master.
type redisNode struct {
	opts redis.Options
}

// String is the address, in one spelling per address.
func (n *redisNode) String() string {
	host, port, err := net.SplitHostPort(n.opts.Addr)
	if n.opts.Network == "unix" || err != nil {
		return n.opts.Addr
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}

// Connect implements Node.
func (n *redisNode) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	inTime, cancel := context.WithTimeout(ctx, n.opts.DialTimeout)
	defer cancel()
	c, err := n.connect(inTime, limit)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() == nil && inTime.Err() != nil:
		// Not wrapped, or a caller would take this deadline for its own.
		return nil, fmt.Errorf("no connection within %v: %v", n.opts.DialTimeout, err)
	}
	return nil, err
}

func (n *redisNode) connect(ctx context.Context, limit time.Duration) (*redisConn, error) {
	socket, err := n.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := newRedisConn(n.opts, socket, limit)
	// go-redis heeds the deadline of a context, but not its cancellation.
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	err = c.identify(ctx)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// dial makes the socket. It is not left to go-redis, which logs failures.
func (n *redisNode) dial(ctx context.Context) (net.Conn, error) {
	o := &n.opts
	if o.Dialer != nil {
		return o.Dialer(ctx, o.Network, o.Addr)
	}
	d := net.Dialer{KeepAlive: 30 * time.Second}
	if o.TLSConfig != nil {
		return (&tls.Dialer{NetDialer: &d, Config: o.TLSConfig}).DialContext(ctx, o.Network, o.Addr)
	}
	return d.DialContext(ctx, o.Network, o.Addr)
}

// newRedisConn puts a go-redis client on one socket. When that has ended the
// client cannot get another.
func newRedisConn(o redis.Options, socket net.Conn, limit time.Duration) *redisConn {
	var once sync.Once
	h := newHandover(socket)
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		err := net.ErrClosed
		once.Do(func() { err = nil })
		return h, err
	}
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = limit, limit, limit
	client := redis.NewClient(&o)
	return &redisConn{client: client, conn: client.Conn(), socket: h, limit: limit}
}

// identify learns whom the connection has reached, as far as the user may ask.
func (c *redisConn) identify(ctx context.Context) error {
	c.calling.Lock()
	defer c.calling.Unlock()
	pipe := c.conn.Pipeline()
	id := pipe.ClientID(ctx)
	info := pipe.Info(ctx) // all sections: before version 7 it takes one or all
	_, err := pipe.Exec(ctx)
	// A reply that is to neither of these is to the handshake, or to the user's
	// OnConnect, which has failed.
	if err != nil && (!isReply(err) || id.Err() == nil && info.Err() == nil) {
		return err
	}
	if redis.HasErrorPrefix(id.Err(), "NOAUTH") {
		return id.Err()
	}
	node := fields(info.Val())
	c.peer = peer(node)
	c.peer.RoundTrip = max(1, c.socket.roundTrip)
	if id.Err() == nil {
		c.peer.ID = id.Val()
	}
	major, _, _ := strings.Cut(node["redis_version"], ".")
	v, err := strconv.Atoi(major)
	c.form.plain = err == nil && v < 7
	if c.form.perKey = clustered(node); !c.form.perKey {
		return nil
	}
	cluster, err := c.conn.ClusterInfo(ctx).Result()
	if err != nil && !isReply(err) {
		return err
	}
	if c.peer.ClusterNodes, err = strconv.Atoi(fields(cluster)["cluster_known_nodes"]); err != nil {
		c.peer.ClusterNodes = -1
	}
	return nil
}

// peer is what INFO says.
func peer(node map[string]string) Peer {
	up, err := strconv.ParseInt(node["uptime_in_seconds"], 10, 32)
	if err != nil {
		up = 0 // nonsense is no proof that it has not just started
	}
	data := node["master_replid"]
	if before := node["master_replid2"]; before != "" && strings.Trim(before, "0") == "" {
		data = "" // it has followed nobody; the id itself changes with every first replica
	}
	return Peer{
		RunID:         node["run_id"],
		Uptime:        time.Duration(up) * time.Second,
		ReplicationID: data,
		Replica:       node["role"] != "" && node["role"] != "master",
	}
}

// clustered is whether INFO is that of a node in cluster mode. Redis says it
// twice; Valkey calls the mode server_mode.
func clustered(node map[string]string) bool {
	return node["cluster_enabled"] == "1" || node["redis_mode"] == "cluster"
}

// fields reads the name:value lines of INFO.
func fields(info string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// withoutURL is what is wrong with a URL, by ParseURL's error, without anything
// that stands in the URL: where a password was not percent-encoded, any part of
// it may be taken for something else.
func withoutURL(err error) error {
	what := "not a URL"
	var bad *url.Error
	if !errors.As(err, &bad) {
		// "redis: invalid database number: …" and the like.
		what, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "redis: "), ":")
	}
	return fmt.Errorf("%s: want redis://user:password@host:port/db, rediss:// or unix://, with reserved characters in the password percent-encoded", what)
}
