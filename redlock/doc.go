// Package redlock is a lock that a majority of independent Redis masters
// grants: it keeps working while a minority of them is down, and no single
// restart gives it to two.
//
// # The algorithm
//
// A [Locker] has a fixed set of N [Node]s. To acquire a key it draws a fresh
// random token, reads the clock, and sends
//
//	SET key token NX PX ttl GET
//
// to all nodes at once. If a majority of all N grants, the lease is valid for
//
//	TTL - (time since the clock was read) - (allowance for clock drift)
//
// which counts from before the first request, so that every node keeps the key
// at least that long. Otherwise whatever was granted, or may yet be, is released
// again, and Acquire tries anew after a random back-off. Extending and releasing
// compare the token on the node and need a majority too. This is the algorithm
// at https://redis.io/docs/latest/develop/use/patterns/distributed-locks/, with
// what its critics asked for where it is in a client's power.
//
// # Using it
//
// [Locker.Do] is the whole life of a lock: it waits, renews while the work runs,
// ends the work's context when the lease is lost, and releases. [Locker.Acquire]
// and [Locker.TryAcquire] return a [Lease] to be kept alive or extended, and
// released, by the caller. [Locker.Audit] says which nodes may vote, and what is
// wrong with them.
//
// Not getting a lock has three reasons, and each wants something else done:
// [ErrHeld] (wait), [ErrNoQuorum] (call somebody), [ErrTooSlow] (the same, or a
// longer TTL). [ErrLost] says that a lease was ours and is not: stop.
//
// # What is promised
//
// As long as the assumptions below hold, no two leases on a key are valid at
// once. [Lease.Remaining] and the Err of [Lease.Context] never say held after
// the validity, whatever the network does, also after the machine was suspended
// or its wall clock stepped. The release of an attempt or lease is never
// overtaken by its own acquire, so nothing of it stays on a node that can be
// reached. A node that is down, hung or slow delays nobody as long as a majority
// is not. A caller's context ends every call within NodeTimeout.
//
// # What is not
//
// A lease is a lock for a time, and all of this rests on clocks and on nodes
// that remember:
//
//   - The clocks of nodes and clients count a TTL alike, within [clock.Drift],
//     and nobody steps a node's wall clock forward while a lease lives.
//   - A node keeps a key that it has granted until it expires: it is not
//     evicted, flushed or forgotten in a restart. A node without persistence
//     that comes back within a TTL may grant again what it had granted. Nodes
//     fsync always, or are kept out for MaxTTL after a restart.
//   - Each node is one independent master. A replica that is promoted in its
//     place has lost what was not replicated, and is not the same node.
//   - All clients use the same nodes and the same MaxTTL.
//   - The holder stops in time. A process that is paused, or a write that is
//     under way in the network, goes on after the lease has ended, and no check
//     beforehand prevents it. Only the resource that is written to can refuse
//     it, with a condition in the write itself.
//
// So it lowers the chance of two at once; it is not a proof against it, and not
// a transaction with anything else. Where two at once would cost money, let the
// database decide: a unique constraint, or a conditional update.
//
// # What a Locker keeps
//
// One connection and one goroutine per node, and none per lock or per call,
// renewals under way excepted. [Locker.Close] ends them all.
package redlock
