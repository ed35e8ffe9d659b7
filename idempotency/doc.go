// Package idempotency runs an intent once, however often it is asked for, and
// gives every retry what came of it.
//
// A client names each intent by a key and sends the same key with every retry. A
// [Guard] claims the key in a [Store], runs, and stores the result before anybody
// sees it:
//
//	(none) ──claim──▶ IN_PROGRESS ──complete──▶ SUCCESS ──retention──▶ (none)
//	   ▲                 │   ▲
//	   ├────no effect────┤   │ claim, once the lease or the pause has ended:
//	   │                 ▼   │ take over, and ask before anything else
//	   └──resolved─── UNKNOWN ───resolved───▶ SUCCESS
//
// A record that says IN_PROGRESS has three meanings: its owner is running, has
// failed, or has succeeded and could not say so. So an owner has a lease, by the
// store's clock, and renews it. When that has ended, one retry takes over, and
// does not run: it asks the [Reconciler], who asks the place whose word counts.
// What happened is repaired and replayed, what did not is run, and what nobody can
// tell becomes UNKNOWN, is listed, and can be resolved by people. A failure never
// frees the key by itself, since it may have come after the effect.
//
// # What it does not do
//
// A store may lose records: Redis by eviction, or by a fail-over to a replica that
// was behind. Then the next retry is a new intent. What must never happen twice is
// kept from it at last by a constraint of the database that holds it, such as a
// unique key of user and idempotency key. The record and the effect are two
// writes in two places, unless both are in one PostgreSQL: see CompleteTx of package
// pgstore.
//
// A lease keeps nobody from writing late. When a run is told that it has lost its
// lease, it may be too late, and if its process was stopped it is not told at all.
package idempotency
