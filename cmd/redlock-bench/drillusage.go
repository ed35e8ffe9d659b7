package main

const drillUsage = `Usage: redlock-bench drill [flags]

Puts load on nodes while faults happen to them as a schedule says, shows second by
second what that does, and judges the history: no two holders of a key at once, no
grant while too few nodes could answer, fences that rise, no write lost in a store
that checks them (-fenced), and nothing left on the nodes.

  -nodes SET   spawn:N      N child processes of redis-server or valkey-server, as
                            "redlock-bench help run" has it. This is the default,
                            with N = 5.
               compose      the containers of docker-compose.cluster.yml, which run
                            already; compose:PROJECT where they do several times.
                            What is done to them is done by the docker program.
  -preset NAME a schedule by its name (minority):
               minority     a minority is killed and comes back
               majority     a majority is killed and comes back
               pause        a minority hangs, then a majority does
               rolling      every node restarts, one after the other, each when the
                            last votes again
               wipe         every node loses its data and restarts, one after the
                            other, then a majority at once
               slow         a minority answers late, at first in time and then too
                            late to count
               split        a minority is cut off, then what it is sent disappears,
                            then the answers of a majority do
  -fault SCHEDULE
               a schedule of your own: FAULT:WHO@TIME with commas between them, as
               in kill:2@3s,heal@6s. TIME counts from where the load begins. WHO is a
               number of nodes, chosen by -seed among those that have no fault; or
               nodes by their names, as in kill:n1+n4@3s; or minority, majority, all.
               FAULT is
               kill         the process is killed, and started again when healed
               restart      it is killed and started again at once
               wipe         the same, and it comes back empty (not with -nodes compose)
               stop         the process hangs until healed
               unplug       it has no network until healed (-nodes compose only)
               cut          connections are reset, and new ones as they come
               hole         what it is sent disappears, and nobody is told
               mute         it does what it is told, and its answers disappear
               lag          its answers come late, by a time after a =, as in
                            lag:2=80ms@3s
               heal         ends faults: heal@6s all there are, heal:1@6s one of
                            them, heal:n4@6s that of node 4
               A fault lasts until it is healed, and a node has one at a time. A step
               waits for the one before it. At the end everything is healed.
  -c N         workers (16): half of them take keys of their own, half fight for some
  -lockers N   how many lockers, each like a process of its own, they share (3)
  -d TIME      how long the load lasts (until some seconds after the last fault)
  -ttl TIME    what the nodes are told, and the largest of any client (2s)
  -node-timeout TIME
               how long a node's answer is waited for (50ms, or a fifth of -ttl)
  -keys N      keys that half of the workers fight for (4)
  -hold TIME   how long they hold one (5ms)
  -fenced      have every lease come with a fence, judge their order, and append under
               each to a store in this program that checks them
  -durable     servers write every grant to disk before they answer it, which spawned
               ones are told to, and so vote as soon as they are back. Without it a restarted node is
               in quarantine for -ttl and a second or two, with -fenced at least 5s;
               also at the beginning, which the drill waits for.
  -seed N      of the choice of nodes and keys (1)
  -json FILE   write the results as JSON too; - means standard output, and the
               text then goes to standard error

time        since the load began
grants/s    leases that were acquired in the second before
p99 own     of acquires on keys that nobody else wants
p99 shared  on keys that are fought for, the wait for holders included

Each fault is seen to have happened: a node that was killed or stopped does not
answer PING, one that was restarted is another process, a wiped one has lost a key.
One that did not happen fails the drill.

"Beyond its wait for a holder" counts from when the key was last let go. This and
the first grant after a majority is back are reported next to what they should be,
and not judged, as they are up to the machine too.

An interrupt (Ctrl-C), a closed terminal, or output that nobody reads any more ends
the drill early: nodes are healed, everything is released, printed and judged. A
second one ends the program at once; containers then stay as they are.

Exit status: 0 clean; 1 something was wrong, or the drill could not be made;
2 bad flags; 130 interrupted, and clean as far as it went.
`
