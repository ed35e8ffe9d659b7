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
// With [Config.Fenced] every lease has a number, [Lease.Fence], that no other lease
// on the key has, and that is larger than that of any lease which was there before
// it was asked for. This holds whatever clocks, pauses and networks do, also when
// two hold the lock at once, as long as nodes keep their data; and across data that
// nodes lose in restarts, one or all of them, as long as every wall clock is right
// within a second (twice the error, and a second, must be less than the quarantine
// below). What to do with it is in package fence.
//
// # Who votes
//
// On every new connection a node is asked what it is, by INFO. It has no vote, and
// is sent nothing, if it is a replica, another address of a server that votes
// already, a member of a cluster that has other nodes, or does not say. The last of
// these [Config.AllowUnidentified] lets vote, and then nothing of this section
// holds for it.
//
// A node that has restarted may have forgotten locks that are still held, and so
// may one that was another's replica for a while. It is in quarantine until the
// longest of them has ended: MaxTTL, the drift and up to two seconds, 32 s by
// default, from when it started. Until then it is sent everything, and what it
// denies counts; nothing that it grants or extends does. So a restart of a minority
// is not noticed. While a majority is in quarantine, which is also so when all
// nodes have just been started, nobody gets a lock: TryAcquire returns ErrNoQuorum
// and says in each [Vote] for how much longer, Acquire waits, and a lease that
// cannot be extended without those nodes runs out. [Config.DurableNodes] is the
// operator's word that restarts lose nothing; then they cost nothing.
//
// A node that has lost the key of a lease, or was away when it was acquired, is
// given it back after the next extension that a quorum grants, and counts in those
// that come later, out of quarantine. So a lease outlives the restarts of all
// nodes, if it is extended or kept alive, they restart one after the other, and no
// majority of them is in quarantine at once.
//
// # What is not
//
// A lease is a lock for a time, and all of this rests on clocks and on nodes
// that remember:
//
//   - The clocks of nodes and clients count a TTL alike, within [clock.Drift],
//     and nobody steps a node's wall clock forward while a lease lives.
//   - A node that goes on running keeps a key that it has granted until it
//     expires. Keys that are evicted, flushed or deleted by hand, or are gone
//     with a snapshot of the machine that is put back, are not noticed.
//   - A restart shows in the connection that it ends. A proxy that keeps its
//     connections to clients while it changes those to servers hides it.
//   - That a node was another's replica for a while shows in what it then refuses
//     to write, on the next connection, or within 5 s on one that is idle. What it
//     grants before that counts.
//   - A Locker that was there before a node's restart times the quarantine by its
//     own clock. One that has just started knows only how long the node says it
//     has been up, by the node's wall clock: if that is stepped forward after the
//     start, the node votes too early. Nodes start after their clock is set.
//   - Each node is one independent master. A replica that is promoted in its
//     place has lost what was not replicated. A Locker that has seen it as a
//     replica, or the node before it and has no DurableNodes, puts it in
//     quarantine; any other takes it for what it says it is.
//   - All clients use the same nodes and the same MaxTTL. Fences are in order
//     among those who have Config.Fenced; the others have none.
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
// One connection per node, one goroutine, or a few where the node is far, and none per
// lock or per call, renewals under way excepted. [Locker.Close] ends them all.
package redlock
