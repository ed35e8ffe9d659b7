package main

// usages are the help texts of the commands.
var usages = map[string]string{"run": runUsage, "compare": compareUsage, "drill": drillUsage, "doctor": doctorUsage, "version": versionUsage, "help": helpUsage}

const helpUsage = `Usage: redlock-bench [command] [flags]

  run       measure the quorum lock and check it; what happens without a command
  compare   measure this lock and others in turn, and report it in tables and plots
  drill     put load on nodes while they are killed, hung and cut off, and check it
  doctor    say what the nodes are, which may vote, and what is wrong with them
  version   print versions
  help      print this, or "redlock-bench help run" for a command's flags
`

const versionUsage = `Usage: redlock-bench version

Prints the versions of this program, of the library, of go-redis and of Go.
`

const doctorUsage = `Usage: redlock-bench doctor -nodes SET [flags]

Asks every node what it is, and says which may vote, which may not and why, and
what to do: replicas, two names for one server, members of a cluster, nodes that
have just restarted, evict keys, forget them in a restart, are too far away or
too old, have a wrong clock, or do not permit what the lock needs. It changes
nothing on a node; the refusals that it provokes may be in ACL LOG.

  -nodes SET   URL,URL,...  as "redlock-bench help run" has it. embedded:N and
                            spawn:N show what a report looks like.
  -durable     judge the nodes as with Config.DurableNodes: they are said to keep
               every key through a restart
  -fenced      judge them as with Config.Fenced
  -max-ttl TIME
               Config.MaxTTL, the largest TTL of any client (30s)
  -node-timeout TIME
               Config.NodeTimeout (50ms, or less where a fifth of -max-ttl is)
  -prefix TEXT
               Config.KeyPrefix, for users who may touch only some keys
  -json FILE   write what was found as JSON too; - means standard output, and the
               text then goes to standard error

votes       yes, no, or in how long: the node is in quarantine until then
up          since when it runs, by its own clock
durable     whether it keeps every key through a restart
memory      what it does with keys when it is full
rtt         the shortest of a few round trips
clock       how far its clock is from the middle of the others, this machine's
            included; ± if it is no further than the round trip leaves open

Exit status: 0 fine, perhaps with notes; 1 warnings; 3 problems: some node may
not vote, or does not do what it is said to, or nothing could be asked; 2 bad
flags; 130 interrupted.
`

const runUsage = `Usage: redlock-bench [run] [flags]

Runs lock cycles (acquire, release) on a set of nodes: first each worker on
keys of its own, then all workers fighting for a few. Says how many cycles a
second were done and how long they took, and judges the run: no two holders of
a key at once, fences that rise, and nothing left on the nodes.

  -nodes SET   embedded:N   N servers inside this program. They show that it
                            works, not how fast Redis is. This is the default,
                            with N = 5.
               spawn:N      N child processes of redis-server or valkey-server,
                            whichever is in PATH; REDIS_SERVER names another.
               URL,URL,...  servers that run already: redis://user:password@host:port/db,
                            rediss:// for TLS, unix://user:password@/path. What is
                            special in a password is percent-encoded. All keys
                            of the run begin with a prefix of its own.
  -c N         workers (64)
  -d TIME      how long each of the two phases lasts (5s)
  -n N         do N cycles in each phase instead
  -ttl TIME    what the nodes are told (10s). In the second phase it is also how
               long a worker waits for a key before it counts that as a failure.
  -keys N      keys that the workers fight for in the second phase (4)
  -hold TIME   how long they hold one (1ms)
  -fenced      have every lease come with a fence, and judge their order
  -durable     the servers at the URLs keep every key through a restart. Without
               it, one that has not been up for 32 s or more does not vote yet.
  -seed N      of the choice of keys and of pauses after failures (1)
  -json FILE   write the results as JSON too; - means standard output, and the
               text then goes to standard error
  -history FILE
               write what the workers saw of each lease too, as a line of JSON for
               each event: called, returned, lost, released

The check keeps some 200 bytes for each cycle until the end.

An interrupt (Ctrl-C), a closed terminal, or output that nobody reads any more ends
the run early: everything is released, printed and judged. A second one ends the
program at once; keys are then left to their TTL.

Exit status: 0 clean; 1 the check failed, or the run could not be made;
2 bad flags; 130 interrupted, and clean as far as it went.
`
