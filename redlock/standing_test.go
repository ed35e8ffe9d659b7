package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// noQuorum is a TryAcquire that too few nodes must vote on.
func noQuorum(t testing.TB, l *Locker, key string) *AttemptError {
	t.Helper()
	lease, err := l.TryAcquire(t.Context(), key)
	var failure *AttemptError
	if !errors.Is(err, ErrNoQuorum) || !errors.As(err, &failure) {
		t.Fatalf("%v, %v: want ErrNoQuorum", lease, err)
	}
	return failure
}

// mayNot are what a node can be that keeps it from voting, and the words for it.
var mayNot = map[string]struct {
	is    Peer
	words string
}{
	"replica":           {Peer{Replica: true}, "it is a replica"},
	"cluster of three":  {Peer{ClusterNodes: 3}, "it is one of 3 nodes of a cluster"},
	"cluster of secret": {Peer{ClusterNodes: -1}, "it does not say what it is"},
}

// A node that is no voter is sent nothing and is not counted, from the first
// connection on or from a later one. When it has become one, its grants do not
// count at first, whatever the operator says of restarts.
//
// field-reports: 27, 81
func TestNoVoterIsSentNothingAndIsNotCounted(t *testing.T) {
	for name, c := range mayNot {
		for _, durable := range []bool{false, true} {
			for _, atFirst := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, durable %v, at first %v", name, durable, atFirst), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						mem, nodes := memNodes(3)
						if atFirst {
							mem[0].is = c.is
						}
						l := newLocker(t, nodes, Config{TTL: time.Second, MaxTTL: 10 * time.Second, DurableNodes: durable})
						cycle(t, l, "k")
						if !atFirst {
							mem[0].set(func(n *memNode) { n.is = c.is })
							mem[0].cut()
							findOut(l)
						}
						before := mem[0].arrived()
						cycle(t, l, "k") // two are enough
						away(mem[1])
						for range 3 {
							vote := noQuorum(t, l, "k").Votes[0]
							if !errors.Is(vote.Err, errNoVoter) || !strings.Contains(vote.String(), c.words) || vote.Quarantined != 0 {
								t.Errorf("vote %v", vote)
							}
							if err := l.lanes[0].standing(l.clock.Now()); !errors.Is(err, errNoVoter) {
								t.Errorf("standing %v", err)
							}
							time.Sleep(3 * time.Second)
						}
						if sent := mem[0].arrived() - before; sent > 0 {
							t.Errorf("it was sent %d operations", sent)
						}

						mem[0].set(func(n *memNode) { n.is = Peer{} })
						became := time.Now()
						time.Sleep(barredPause + laterPause)
						if c.is.ClusterNodes < 0 { // it was not known to be none, and is what it was
							acquire(t, l, "k").Release(t.Context())
							return
						}
						if vote := noQuorum(t, l, "k").Votes[0]; vote.Quarantined <= 0 || !strings.Contains(vote.String(), "became a voter") {
							t.Errorf("vote %v", vote)
						}
						lease, err := l.Acquire(t.Context(), "k")
						if err != nil {
							t.Fatal(err)
						}
						if took := time.Since(became); took < 12*time.Second || took > 14*time.Second {
							t.Errorf("it votes after %v, want 12 s and what it takes to notice", took)
						}
						if mem[0].holder("k") != lease.Token() {
							t.Error("the lease does not rest on it: the test shows nothing")
						}
					})
				})
			}
		}
	}
}

// Too few voters are no reason to wait for anything.
func TestTooFewVotersAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		mem[0].is, mem[1].is = Peer{Replica: true}, Peer{Replica: true}
		mem[2].silent = true // its dial takes a second
		l := newLocker(t, nodes, Config{})
		began := time.Now()
		failure := noQuorum(t, l, "k")
		if took := time.Since(began); took > l.nodeTimeout {
			t.Errorf("took %v", took)
		}
		if text := failure.Error(); strings.Count(text, "not a voter: it is a replica, and only masters vote") != 2 {
			t.Error(text)
		}
	})
}

// A node that is no voter is looked at again every second. The trace says why it
// does not vote, once, also if it was away before.
func TestNoVoterIsAskedAgainEverySecond(t *testing.T) {
	for name, away := range map[string]bool{"there at first": false, "away at first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				mem[0].is.Replica = true
				var d diary
				if away {
					mem[0].refuse = errors.New("connection refused")
				}
				newLocker(t, nodes, Config{Trace: d.trace()})
				synctest.Wait()
				mem[0].set(func(n *memNode) { n.refuse = nil })
				time.Sleep(firstPause + laterPause)
				before := mem[0].connections()
				time.Sleep(10 * time.Second)
				if n := mem[0].connections() - before; n != 10 {
					t.Errorf("%d connections in 10 s", n)
				}
				if open := mem[0].open(); open != 0 {
					t.Errorf("%d connections are open", open)
				}
				told := 0
				_, errs := d.read()
				for _, err := range errs {
					if errors.Is(err, errNoVoter) {
						told++
					}
				}
				if told != 1 {
					t.Errorf("told %d times: %v", told, errs)
				}
			})
		})
	}
}

// Close does not wait for the next look at a node that is no voter.
func TestCloseDoesNotWaitForANodeThatIsNoVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, nodes := memNodes(3)
		mem[0].is.Replica = true
		l := newLocker(t, nodes, Config{})
		cycle(t, l, "k")
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > laterPause {
			t.Errorf("took %v", took)
		}
	})
}

// place is an address: what server is reached there can change.
type place struct {
	name string

	mu sync.Mutex // guards at
	at *memNode
}

func (p *place) String() string { return p.name }

func (p *place) Connect(ctx context.Context, limit time.Duration) (Conn, error) {
	p.mu.Lock()
	at := p.at
	p.mu.Unlock()
	return at.Connect(ctx, limit)
}

func (p *place) set(at *memNode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
}

// Two addresses of one server are one vote: of three, both others are needed.
//
// field-reports: 27
func TestTwoAddressesOfOneServerAreOneVote(t *testing.T) {
	for name, durable := range map[string]bool{"durable": true, "not durable": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				nodes[1] = &place{name: "n1's other name", at: mem[0]}
				l := newLocker(t, nodes, Config{TTL: time.Second, DurableNodes: durable})
				for range 5 {
					cycle(t, l, "k")
					time.Sleep(700 * time.Millisecond)
				}
				lease := acquire(t, l, "k")
				synctest.Wait()
				if got := holders(mem, "k"); got != lease.Token().Digest()+" - "+lease.Token().Digest() {
					t.Fatalf("held on %s", got)
				}
				lease.Release(t.Context())
				for _, other := range []int{2, 0} { // each of the two alone
					away(mem[other])
					failure := noQuorum(t, l, "k")
					if text := failure.Error(); other == 2 && !strings.Contains(text, "it is the same server as") {
						t.Error(text)
					}
					time.Sleep(3 * time.Second)
					noQuorum(t, l, "k")
					mem[other].set(func(n *memNode) { n.refuse = nil })
					time.Sleep(3 * time.Second)
					cycle(t, l, "k")
				}
			})
		})
	}
}

// All names may lead to one server, as in a test environment: it does not make a
// quorum by itself.
//
// field-reports: 27
func TestOneServerIsNoQuorumOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemNode(1)
		var nodes []Node
		for i := range 3 {
			nodes = append(nodes, &place{name: fmt.Sprint("name ", i), at: mem})
		}
		l := newLocker(t, nodes, Config{DurableNodes: true})
		for range 5 {
			if text := noQuorum(t, l, "k").Error(); strings.Count(text, "it is the same server as") != 2 {
				t.Error(text)
			}
			time.Sleep(time.Second)
		}
	})
}

// Servers may change places: each has its vote under its new name, after the
// quarantine of one that an address has not had before.
func TestServersMayChangePlaces(t *testing.T) {
	for name, durable := range map[string]bool{"durable": true, "not durable": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, _ := memNodes(3)
				places := []*place{{name: "x", at: mem[0]}, {name: "y", at: mem[1]}, {name: "z", at: mem[2]}}
				l := newLocker(t, []Node{places[0], places[1], places[2]}, Config{TTL: time.Second, MaxTTL: time.Second, DurableNodes: durable})
				cycle(t, l, "k")
				synctest.Wait()
				places[0].set(mem[1])
				places[1].set(mem[0])
				mem[0].cut()
				mem[1].cut()
				findOut(l)
				time.Sleep(barredPause) // a second look at one of them
				quarantined := 0
				for _, lane := range l.lanes[:2] {
					var why *QuarantineError
					if errors.As(lane.standing(l.clock.Now()), &why) {
						quarantined++
					}
				}
				// The one that was refused at first may have voted under its other name
				// in a round that is still going on, so it is never believed at once.
				if want := map[bool]int{true: 1, false: 2}[durable]; quarantined != want {
					t.Errorf("%d are in quarantine, want %d", quarantined, want)
				}
				time.Sleep(4 * time.Second)
				away(mem[2])
				findOut(l)
				lease := acquire(t, l, "k") // z is not needed
				if heldOn(mem[:2], "k", lease.Token()) != 2 {
					t.Errorf("held on %s", holders(mem, "k"))
				}
			})
		})
	}
}

// away takes a node away.
func away(n *memNode) {
	n.set(func(n *memNode) { n.refuse = errors.New("refused") })
	n.cut()
}

// findOut has all lanes notice which connections have ended, and connect anew. An
// acquire would not do: what a quorum was quicker than is not sent.
func findOut(l *Locker) {
	l.Inspect(context.Background(), "to find out")
	time.Sleep(laterPause)
}

// Nodes that do not say what they are vote only if that is allowed, and then at
// once.
func TestUnidentifiedNodesVoteOnlyIfAllowed(t *testing.T) {
	for name, allowed := range map[string]bool{"allowed": true, "not allowed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, nodes := memNodes(3)
				for _, n := range mem[:2] {
					n.shyPeer = true
				}
				l := newLocker(t, nodes, Config{AllowUnidentified: allowed})
				if !allowed {
					if text := noQuorum(t, l, "k").Error(); strings.Count(text, "Config.AllowUnidentified") != 2 {
						t.Error(text)
					}
					return
				}
				cycle(t, l, "k")
				mem[0].restart(false)
				away(mem[2])
				findOut(l)
				cycle(t, l, "k")
			})
		})
	}
}
