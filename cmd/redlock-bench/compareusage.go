package main

const compareUsage = `Usage: redlock-bench compare [flags]

Runs this lock and others in turn on the same servers, each measurement in a
process of its own, several times over, and says what each of them does, in
medians and in ratios to redsync of the same repetition. Everybody has their own
defaults and connections; what each promises and does not stands at the end.

  -nodes SET   spawn:5, the default, starts 5 servers anew for every measurement.
               embedded:N and URL,URL,... as "redlock-bench help run" has it; on
               these no faults are made and no way is made longer, and embedded
               ones only show that it works.
  -durable     the servers at the URLs keep every key through a restart
  -modes LIST  some of these, with a comma between them (all of them)
                 limit        what the machine can do with the same commands: a
                              pump that sends prepared bytes
                 uncontended  each worker on keys of its own
                 rtt          the same, with 2 ms added to each round trip
                 contended    64 workers want one key and hold it for 1 ms, with
                              one locker and with 8
                 fault        one node killed, one stopped, two stopped, under load
                 alive        leases that one locker keeps for as long as it can
  -with LIST   some of quorumlock, quorumlock-fenced, redsync, redislock,
               rueidislock (all of them)
  -c LIST      how many workers where they do not fight (1,8,64,256)
  -leases LIST how many are kept alive (10000,30000,100000)
  -d TIME      how long each measurement lasts (3s); contended it lasts twice as
               long, through a fault four times, and where leases are kept alive,
               two renewals
  -reps N      how often all of it is done (3); leases are kept alive once
  -quick       some of it, once and shortly: under a minute, and good for a look
  -json FILE   write everything that was measured as JSON too; - means standard
               output, and the text then goes to standard error
  -html FILE   write a page with plots, which needs no other file
  -write FILE  write the tables into a Markdown document, between the lines
               ` + markerFrom + `
               ` + markerTo + `

acquire        how long an acquire took, of those that ended in the time
of the limit   of the pump's cycles a second, for plain commands on as many nodes
keys left      on all nodes after the last release has returned
failed         calls that ended with an error
cut            calls that had not ended 3 s after the end, and were given up
others' cores  what neither this program nor its servers used of the processors,
               the most of any repetition: where it is not near 0, measure again

The whole takes some 25 minutes. An interrupt (Ctrl-C) ends it and reports what
there is; a second one ends the program at once.

Exit status: 0 measured; 1 it could not be, or two held a key at once; 2 bad
flags; 130 interrupted. How fast anything was has no part in it.
`
