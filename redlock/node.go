package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// Node is one voter: an independent Redis master as [Redis] and [Dial] make
// it, or a simulated one. Connect may be called while another call of it is under way.
//
// Node and [Conn] may gain methods before version 1.
type Node interface {
	// String names the node in votes and errors. It holds no credentials, and
	// two nodes of a Locker have different names.
	String() string

	// Connect opens one connection, ready for work, and returns once it knows
	// whom it has reached, or with an error when ctx is done. limit bounds each
	// later call on the connection: no answer for that long means that the
	// connection is dead.
	Connect(ctx context.Context, limit time.Duration) (Conn, error)
}

// Conn is one ordered connection to a node. What is sent on it is carried out
// in the order of sending, and once it has ended it stays so: a Conn never
// connects anew on its own. While a call of Send is running, others may be called, on
// other keys, and Close while any call is.
type Conn interface {
	// Peer says whom the connection reached.
	Peer() Peer

	// Gather is called before a flight is put together, and returns when whoever
	// is about to queue something for it has done so, or soon.
	Gather()

	// Send has the node carry out the flight's operations in their order, and
	// fills in the Reply of each. Operations are safe to carry out twice.
	//
	// An error means that the connection has ended. Replies that are filled in
	// stand, the others are Unknown, also some that had come by then: those
	// operations may have been carried out, and as long as the node has not
	// killed the connection, may still be. An empty flight asks whether the node
	// is there.
	Send(ctx context.Context, flight []*Op) error

	// Kill has the node end the connection with this id and discard whatever
	// it had not read from it. That the connection is already gone is no error.
	// The id must come from the same process: [Peer] tells.
	Kill(ctx context.Context, id int64) error

	// Facts asks the node what it is. What the user may do is tried on key, which
	// nobody uses and which is not there afterwards. clk is read around questions
	// for the time. An error means that the connection has ended. So it may have
	// without one: nothing else is sent on a connection that was asked this.
	Facts(ctx context.Context, key string, clk clock.Clock) (*Facts, error)

	// Close ends the connection; a running Send returns. It may be repeated.
	Close() error
}

// Peer is what a connection has reached, by the node's own word.
type Peer struct {
	// ID is the node's own number for this connection, 0 if it would not tell.
	// Numbers start anew when a node restarts.
	ID int64
	// RunID names the node's process, differently after each start, or is ""
	// if the node would not tell. Then nothing below is known either.
	RunID string
	// Uptime is how long the process has run, by the node's wall clock and in
	// whole seconds: up to a second more or less than it has. A clock that was
	// stepped makes it wrong, and may make it negative.
	Uptime time.Duration
	// ReplicationID names the data set that the node has taken over from another
	// and then gone on with as a master, or is "" if it has only ever had its own.
	ReplicationID string
	// Replica: the node copies another.
	Replica bool
	// RoundTrip is the shortest time in which a question was answered so far; 0 if that
	// is not known.
	RoundTrip time.Duration
	// ClusterNodes is how many nodes its cluster has, itself included: 0 if it
	// is not in cluster mode, -1 if it would not tell.
	ClusterNodes int
}

// OpKind is what an operation does. In a flight, operations stand in the
// order of their kinds.
type OpKind uint8

const (
	// OpAcquire sets the key to the token, with the TTL, if there is no key.
	// A key that holds the token already counts as granted. With a counter it
	// also raises that, by one or to the fence proposed, whichever is more, but no
	// further than a second ahead of the node's clock; for a key that holds the
	// token already the counter stays as it is.
	OpAcquire OpKind = iota
	// OpStamp sets the counter to the fence if the key holds the token and the
	// counter is not above it.
	OpStamp
	// OpExtend sets the key's remaining time to the TTL if it holds the token
	// and has less left. It never creates a key and never shortens its time. A
	// counter then lasts for its own TTL from now.
	OpExtend
	// OpInspect reads the key and its remaining time.
	OpInspect
	// OpRelease deletes the key if it holds the token.
	OpRelease
)

// String is the kind in one word.
func (k OpKind) String() string {
	switch k {
	case OpAcquire:
		return "acquire"
	case OpStamp:
		return "stamp"
	case OpExtend:
		return "extend"
	case OpInspect:
		return "inspect"
	case OpRelease:
		return "release"
	}
	return "op"
}

// Op is one operation on one key of one node.
type Op struct {
	Kind  OpKind
	Key   string        // as the node knows it
	Token Token         // not for OpInspect
	TTL   time.Duration // for OpAcquire and OpExtend; a node rounds it up to its own unit

	// Counter is the key whose number rises with every lease on Key, "" for a
	// lock without fences. The operations of a flight that are of one kind all
	// have one, with the same CounterTTL, or none has.
	Counter    string
	CounterTTL time.Duration // how long the counter outlives its last change
	Fence      fence.Token   // proposed by OpAcquire, set by OpStamp

	Reply Reply // filled in by Conn.Send
}

// Reply is a node's answer to an operation.
type Reply struct {
	// Vote is Granted if the node did what it was asked (and for OpInspect if
	// there is a key), Denied if it definitely did not, and Unknown, with Err
	// set, for everything else.
	Vote quorum.Vote
	// Nothing is for a vote that is Unknown because the node has refused the
	// operation and has certainly not carried it out.
	Nothing bool
	// Holder is what the key held instead, where the node says so. With Denied,
	// "" is no key for OpExtend and OpRelease, and not known for OpAcquire.
	Holder Token
	// Fence is what the counter was raised to (OpAcquire with a counter).
	Fence fence.Token
	// Remaining is what the key had left (OpInspect).
	Remaining time.Duration
	// Err is why the vote is Unknown. With Denied it says that the key holds
	// something that is no lock.
	Err error
}
