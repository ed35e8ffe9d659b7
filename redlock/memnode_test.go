package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// memNode is a node in memory, for bubbles: it keeps keys as Redis does, and
// can be stopped, refused, slowed and restarted.
type memNode struct {
	name string

	mu           sync.Mutex // guards what follows
	keys         map[string]memKey
	counters     map[string]fence.Token
	conns        map[int64]*memConn
	lastID       int64
	runID        int
	data         int           // the number of its data set
	booted       time.Time     // by its wall clock
	step         time.Duration // how far its wall clock has been stepped
	is           Peer          // what it says of itself besides
	resume       chan struct{} // not nil while stopped
	waiting      []*memFlight  // what came while stopped, in order
	refuse       error         // answer to Connect
	silent       bool          // Connect gets no answer
	lag          time.Duration // before the answer
	late         time.Duration // before the flight is carried out
	mute         int           // so many flights are carried out and their connection then ends
	fail         error         // answer to every operation
	noKill       bool          // Kill is not permitted
	killsNothing bool          // Kill says it has, and has not
	shyPeer      bool          // tells neither id nor run id
	log          []Op          // what was carried out
	asked        int           // how many operations have arrived
	kills        []int64
}

type memKey struct {
	token Token
	until time.Time
}

type memConn struct {
	node  *memNode
	peer  Peer
	limit time.Duration
	ended chan struct{}
	once  sync.Once
	last  *memFlight // guarded by node.mu
}

// memFlight is carried out, and answered, after the one that was sent before it on
// the same connection.
type memFlight struct {
	conn      *memConn
	ops       []*Op
	copies    []Op
	before    *memFlight
	stopped   bool // the node was when it came
	late, lag time.Duration
	mute      bool
	done      chan struct{} // closed when it has been carried out
	answered  chan struct{} // closed when its Replies are filled in
}

func newMemFlight(c *memConn, ops []*Op) *memFlight {
	f := &memFlight{conn: c, ops: ops, before: c.last, done: make(chan struct{}), answered: make(chan struct{})}
	for _, op := range ops {
		f.copies = append(f.copies, *op)
	}
	return f
}

var errMemEnded = errors.New("memnode: connection reset")

func newMemNode(i int) *memNode {
	return &memNode{
		name: fmt.Sprintf("n%d", i), keys: map[string]memKey{}, counters: map[string]fence.Token{},
		conns: map[int64]*memConn{}, booted: time.Now().AddDate(-1, 0, 0),
	}
}

func memNodes(n int) ([]*memNode, []Node) {
	var mem []*memNode
	var nodes []Node
	for i := range n {
		mem = append(mem, newMemNode(i+1))
		nodes = append(nodes, mem[i])
	}
	return mem, nodes
}

func (n *memNode) String() string { return n.name }

func (n *memNode) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		n.mu.Lock()
		resume, silent, refuse := n.resume, n.silent, n.refuse
		if refuse == nil && resume == nil && !silent {
			break
		}
		n.mu.Unlock()
		if refuse != nil {
			return nil, refuse
		}
		if silent {
			resume = nil
		}
		select {
		case <-resume:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer n.mu.Unlock()
	n.lastID++
	c := &memConn{node: n, limit: limit, ended: make(chan struct{})}
	c.last = newMemFlight(c, nil)
	close(c.last.done)
	close(c.last.answered)
	c.peer = n.is
	c.peer.ID = n.lastID
	c.peer.Uptime = time.Since(n.booted).Truncate(time.Second) + n.step
	c.peer.ReplicationID = fmt.Sprintf("%s-data%d", n.name, n.data)
	if c.peer.RunID == "" {
		c.peer.RunID = fmt.Sprintf("%s-run%d", n.name, n.runID)
	}
	if n.shyPeer {
		c.peer = Peer{}
	}
	n.conns[n.lastID] = c
	return c, nil
}

func (c *memConn) Peer() Peer { return c.peer }

func (c *memConn) Gather() { runtime.Gosched() }

func (c *memConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	n := c.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, other := range n.conns {
		if other == c && n.resume == nil {
			delete(n.conns, id)
		}
	}
	return nil
}

func (c *memConn) Kill(ctx context.Context, id int64) error {
	n := c.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.noKill {
		return fmt.Errorf("%w: NOPERM", errors.ErrUnsupported)
	}
	if n.killsNothing {
		return nil
	}
	n.kills = append(n.kills, id)
	if victim := n.conns[id]; victim != nil {
		victim.once.Do(func() { close(victim.ended) })
		delete(n.conns, id)
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(f *memFlight) bool { return f.conn.peer.ID == id })
	return nil
}

func (c *memConn) Send(_ context.Context, ops []*Op) error {
	f, err := c.post(ops)
	if err != nil {
		return err
	}
	return c.fetch(f)
}

// post sends a flight.
func (c *memConn) post(ops []*Op) (*memFlight, error) {
	n := c.node
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-c.ended:
		return nil, errMemEnded
	default:
	}
	f := newMemFlight(c, ops)
	f.stopped, f.late, f.lag = n.resume != nil, n.late, n.lag
	c.last = f
	n.asked += len(ops)
	n.waiting = append(n.waiting, f)
	return f, nil
}

// fetch waits for the answers.
func (c *memConn) fetch(f *memFlight) error {
	if !f.stopped {
		if err := c.sleep(f.late); err != nil {
			return err
		}
	}
	limit := time.NewTimer(c.limit)
	defer limit.Stop()
	if !f.stopped {
		if err := c.await(f.before.done, limit.C); err != nil {
			return err
		}
		c.node.carryOut(f)
	}
	if err := c.await(f.done, limit.C); err != nil {
		return err
	}
	if f.mute {
		c.Close()
		return errMemEnded
	}
	if err := c.sleep(f.lag); err != nil {
		return err
	}
	if err := c.await(f.before.answered, nil); err != nil {
		return err
	}
	f.before = nil // or all flights would be kept
	for i, op := range f.ops {
		op.Reply = f.copies[i].Reply
	}
	close(f.answered)
	return nil
}

// await waits for something, for as long as there is a connection.
func (c *memConn) await(what <-chan struct{}, limit <-chan time.Time) error {
	select {
	case <-what:
		return nil
	case <-c.ended:
		return errMemEnded
	case <-limit:
		c.Close()
		return errors.New("memnode: i/o timeout")
	}
}

func (c *memConn) sleep(d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ended:
		return errMemEnded
	}
}

// carryOut runs a flight that is still waiting, unless the node is stopped.
func (n *memNode) carryOut(f *memFlight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.waiting, f)
	if i < 0 || n.resume != nil {
		return // killed, or it waits for the node to go on
	}
	n.waiting = slices.Delete(n.waiting, i, i+1)
	for i := range f.copies {
		n.apply(&f.copies[i])
	}
	if n.mute > 0 {
		n.mute--
		f.mute = true
	}
	close(f.done)
}

func (n *memNode) apply(op *Op) {
	n.log = append(n.log, *op)
	if n.fail != nil {
		op.Reply = Reply{Vote: quorum.Unknown, Err: n.fail, Nothing: true}
		return
	}
	now := time.Now()
	ttl := time.Duration(ceilMillis(op.TTL)) * time.Millisecond
	k, there := n.keys[op.Key]
	if there && now.After(k.until) {
		delete(n.keys, op.Key)
		there = false
	}
	if !there {
		k = memKey{}
	}
	ours := there && k.token == op.Token
	op.Reply = Reply{Vote: quorum.Denied, Holder: k.token}
	switch op.Kind {
	case OpAcquire:
		if !there {
			n.keys[op.Key] = memKey{op.Token, now.Add(ttl)}
			if op.Counter != "" {
				limit := fence.Token(now.Add(n.step + time.Second).UnixMicro())
				n.counters[op.Counter] = max(n.counters[op.Counter]+1, min(op.Fence, limit))
			}
		}
		if !there || ours {
			op.Reply = Reply{Vote: quorum.Granted, Fence: n.counters[op.Counter]}
		}
	case OpStamp:
		if ours {
			op.Reply.Holder = ""
		}
		if ours && n.counters[op.Counter] <= op.Fence {
			n.counters[op.Counter] = op.Fence
			op.Reply = Reply{Vote: quorum.Granted}
		}
	case OpExtend:
		if ours {
			if until := now.Add(ttl); until.After(k.until) {
				n.keys[op.Key] = memKey{op.Token, until}
			}
			op.Reply = Reply{Vote: quorum.Granted}
		}
	case OpRelease:
		if ours {
			delete(n.keys, op.Key)
			op.Reply = Reply{Vote: quorum.Granted}
		}
	case OpInspect:
		op.Reply.Vote = quorum.Denied
		if there {
			op.Reply = Reply{Vote: quorum.Granted, Holder: k.token, Remaining: k.until.Sub(now)}
		}
	}
}

// stop makes the node do nothing until the returned function is called. Then
// it accepts connections at once, and a millisecond later carries out what lies
// in its sockets, those of clients that have gone included.
func (n *memNode) stop() (resume func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resume = make(chan struct{})
	return func() {
		n.mu.Lock()
		close(n.resume)
		n.resume = nil
		left := slices.Clone(n.waiting)
		n.mu.Unlock()
		time.AfterFunc(time.Millisecond, func() {
			for _, f := range left {
				n.carryOut(f)
			}
		})
	}
}

// set changes the node's behaviour.
func (n *memNode) set(change func(n *memNode)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// restart ends all connections; the node forgets its keys unless keep.
func (n *memNode) restart(keep bool) {
	n.mu.Lock()
	conns := n.conns
	n.conns = map[int64]*memConn{}
	n.lastID, n.waiting = 0, nil
	n.runID++
	n.data++
	n.booted = time.Now()
	if !keep {
		n.keys = map[string]memKey{}
		n.counters = map[string]fence.Token{}
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// cut ends all connections; the process lives on.
func (n *memNode) cut() {
	n.mu.Lock()
	conns := slices.Collect(maps.Values(n.conns))
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// holder is the token that the node holds for key, "" for none.
func (n *memNode) holder(key string) Token {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.keys[key]
	if !ok || time.Now().After(k.until) {
		return ""
	}
	return k.token
}

// steal gives key to somebody else.
func (n *memNode) steal(key string, ttl time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys[key] = memKey{"somebody-else", time.Now().Add(ttl)}
}

// size is how many keys the node holds.
func (n *memNode) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	size := 0
	for _, k := range n.keys {
		if !time.Now().After(k.until) {
			size++
		}
	}
	return size
}

// history is what the node has carried out, in order.
func (n *memNode) history() []Op {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}

// arrived is how many operations the node has been sent.
func (n *memNode) arrived() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// carried is how many operations of a kind it has carried out.
func (n *memNode) carried(kind OpKind) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, op := range n.log {
		if op.Kind == kind {
			count++
		}
	}
	return count
}

// connections is how many connections its process has accepted.
func (n *memNode) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(n.lastID)
}

func (n *memNode) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// newLocker is a Locker in a bubble, closed with the test.
func newLocker(t testing.TB, nodes []Node, cfg Config) *Locker {
	t.Helper()
	if cfg.Clock == nil {
		cfg.Clock = clock.NewSkewed(1)
	}
	l, err := New(nodes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l.Close(ctx)
	})
	return l
}

// holders lists what each node holds for key, as digests.
func holders(mem []*memNode, key string) string {
	var all []string
	for _, n := range mem {
		h := n.holder(key).Digest()
		if h == "" {
			h = "-"
		}
		all = append(all, h)
	}
	return strings.Join(all, " ")
}

// heldOn counts the nodes that hold token for key.
func heldOn(mem []*memNode, key string, token Token) int {
	count := 0
	for _, n := range mem {
		if n.holder(key) == token {
			count++
		}
	}
	return count
}

// goroutines counts the goroutines that Lockers have started.
func goroutines() int {
	buf := make([]byte, 1<<22)
	stacks := string(buf[:runtime.Stack(buf, true)])
	return strings.Count(stacks, "created by golang.org/x/sync/errgroup.") + strings.Count(stacks, "created by context.")
}

// Facts implements Conn.
func (c *memConn) Facts(ctx context.Context, _ string, clk clock.Clock) (*Facts, error) {
	if err := c.Send(ctx, nil); err != nil {
		return nil, err
	}
	return &Facts{
		Server: "memnode", Version: "1", RedisVersion: "7.0.0", RunID: c.peer.RunID, UptimeS: 1 << 20, Role: "master",
		Clock: &ClockFacts{},
	}, nil
}
