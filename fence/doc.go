// Package fence is the resource's side of a lock: it refuses the writes of a
// holder who was paused, while the lock went on to another.
//
// A lock that ends by itself cannot keep such a holder from writing late. What
// can is the resource, if every lease carries a number that is larger than that
// of any lease before it, if every write brings the number along, and if the
// resource remembers the largest that it has seen: once 42 has been there, 41 is
// refused with [ErrStale]. What then decides is the order that the resource saw,
// not who believes to hold the lock. Logging the number, or comparing it
// anywhere but in one step with the write, protects nothing.
//
// The number is a [Token]. What remembers it depends on the resource:
//
//   - [Gate] for one in this process.
//   - [Row] for a row of a database that one conditional write per lease changes.
//   - [Table] for any transaction: it claims the resource on entry, before the
//     first read. This is the one to take when in doubt.
//   - [Redis] for what is kept in Redis, and changed by a script there.
//
// All writers of a resource take part, by the same means, or it does not hold.
//
// # Claim before the first read
//
// A fence that is shown only with the write comes too late for what the write is
// computed from. With 41 the late holder and 42 the rightful one:
//
//	42 reads 10
//	41 reads 10, writes 9     accepted: nothing newer has been here yet
//	42 writes 9               accepted: and two are sold, but one is missing
//
// Both fences were checked, in the right order, and an update is lost. So the
// first thing that 42 does is to say that it is here, by [Table.Claim],
// [Redis.Claim] or inside [Gate.Do]; then 41 is refused. [Row] needs no claim, as
// its write reads and changes the row in one step, and for the same reason must
// not be given what was computed from an earlier read.
//
// # What it rests on
//
// The resource must not forget. A replica that is promoted without the last
// commits has forgotten the fences in them, and lets in once more what had been
// refused. Fences must be unique to a lease, since a fence equal to the largest
// is taken to be the same lease again, in its second write. They need not come
// from this lock: a sequence of the database that also holds the resource does,
// and so does the revision that a consensus service gives to its locks.
package fence
