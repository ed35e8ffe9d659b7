// Package nodes is what the clients of these tests lock on: five servers of one
// backend, or of another, with everything that can be done to a server.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

func init() {
	// A server that is gone is not worth a line each time it is asked.
	redis.SetLogger(nobody{})
}

type nobody struct{}

func (nobody) Printf(context.Context, string, ...any) {}

// Server is a server of a backend. What is done to it has happened when the
// method returns; then all else is up to the server.
type Server interface {
	// Addr is where it answers, also after it has been started again.
	Addr() string
	// Peer is where other servers of its backend find it.
	Peer() string
	// Kill ends it as SIGKILL does, paused or not.
	Kill(ctx context.Context) error
	// Restart starts it again, after it has been ended if it still runs, and
	// returns once it answers.
	Restart(ctx context.Context, data redisproc.Data) error
	// Pause halts it, with its connections; Resume lets it go on.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Disconnect takes it off its network, and Connect puts it back there. The
	// error is errors.ErrUnsupported where it has no network of its own.
	Disconnect(ctx context.Context) error
	Connect(ctx context.Context) error
	// Close ends it and removes all that it has left.
	Close(ctx context.Context) error
}

// Clocked is a Server whose wall clock can be set.
type Clocked interface {
	StepClock(by time.Duration) error
}

// Backend starts servers. One that is durable writes each command to its disk
// before it answers; another keeps nothing on disk.
type Backend interface {
	Start(ctx context.Context, durable bool) (Server, error)
}

// Node is a server, and someone who may do everything there.
type Node struct {
	Server
	Admin *redis.Client
}

// Start starts a node.
func Start(ctx context.Context, b Backend, durable bool) (*Node, error) {
	s, err := b.Start(ctx, durable)
	if err != nil {
		return nil, err
	}
	return &Node{s, Client(s.Addr())}, nil
}

// hang is when an answer is no longer waited for.
const hang = 30 * time.Second

// Client is for one who asks a server directly: one connection, and nothing is
// sent twice.
func Client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, PoolSize: 1, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		ContextTimeoutEnabled: true, ReadTimeout: hang,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Disconnect implements Server. The administrator hangs up first: a connection that
// is open now will never be closed at the other end.
func (n *Node) Disconnect(ctx context.Context) error {
	if err := n.Admin.Close(); err != nil {
		return err
	}
	n.Admin = Client(n.Addr())
	return n.Server.Disconnect(ctx)
}

// Close ends the server.
func (n *Node) Close(ctx context.Context) error {
	return errors.Join(n.Admin.Close(), n.Server.Close(ctx))
}

// Info is a field of INFO, "" if there is none.
func (n *Node) Info(ctx context.Context, section, field string) (string, error) {
	text, err := n.Admin.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, field+":"); is {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// Refused is how many commands the server has answered with an error of this
// code since it was started.
func (n *Node) Refused(ctx context.Context, code string) (int, error) {
	count, err := n.Info(ctx, "errorstats", "errorstat_"+code)
	if err != nil || count == "" {
		return 0, err
	}
	return strconv.Atoi(strings.TrimPrefix(count, "count="))
}

// Answers says whether the server answers a new connection before ctx ends.
func (n *Node) Answers(ctx context.Context) bool {
	c := Client(n.Addr())
	defer c.Close()
	err := c.Ping(ctx).Err()
	return err == nil || strings.HasPrefix(err.Error(), "NOAUTH")
}

// Locks are the keys of locks that are still there, those of counters left out.
func (n *Node) Locks(ctx context.Context) (locks []string, err error) {
	keys, err := n.Admin.Keys(ctx, "*").Result()
	for _, k := range keys {
		if !strings.Contains(k, ":fence") {
			locks = append(locks, k)
		}
	}
	return locks, err
}

// Connections is how many there are, but for that of the one who asks.
func (n *Node) Connections(ctx context.Context) (int, error) {
	list, err := n.Admin.ClientList(ctx).Result()
	return strings.Count(list, "\n") - 1, err
}

// Version is which server it is.
func (n *Node) Version(ctx context.Context) (string, error) {
	if v, err := n.Info(ctx, "server", "valkey_version"); err != nil || v != "" {
		return "Valkey " + v, err
	}
	v, err := n.Info(ctx, "server", "redis_version")
	return "Redis " + v, err
}

// answering waits until the server answers as one does that has loaded its data.
func answering(ctx context.Context, addr string) error {
	c := Client(addr)
	defer c.Close()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w: %w", addr, ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// arguments are what a server is started with, besides where it listens. It soon
// notices that a client has gone of whom it hears nothing any more, as when that was
// killed while the server was off its network: whoever counts connections waits for
// that.
func arguments(durable bool) []string {
	args := []string{"--save", "", "--tcp-keepalive", "1"}
	if !durable {
		return append(args, "--appendonly", "no")
	}
	return append(args, "--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no")
}

var ports sync.Map // those that were chosen

// port is one to listen on. It is chosen here, and not by the system, which would give
// it to somebody else while the server is down: to a listener, or to an outgoing
// connection, even to one that is meant for this very port and so reaches itself.
// None is chosen twice: a server may not have begun to listen.
func port() (port int, err error) {
	const first, many = 20000, 10000 // below those that systems choose from
	for range 100 {
		port = first + rand.IntN(many)
		if _, taken := ports.LoadOrStore(port, true); taken {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
