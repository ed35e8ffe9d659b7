package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// An operation on a node that is far is sent while others are under way, and one on a
// node nearby waits for them.
func TestFarNodeHasSeveralFlights(t *testing.T) {
	const way = 10 * time.Millisecond
	for _, c := range []struct {
		name string
		far  bool
		want []time.Duration // of calls that begin a millisecond after each other
	}{
		{"far", true, []time.Duration{way, way, way, way, 2*way - 4*time.Millisecond}},
		{"near", false, []time.Duration{way, 2*way - time.Millisecond, 2*way - 2*time.Millisecond, 2*way - 3*time.Millisecond, 2*way - 4*time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, nodes := respNodes(t, 1, respfake.Options{})
				if c.far {
					servers[0].Lag(way)
				}
				l := newLocker(t, nodes, Config{DurableNodes: true})
				time.Sleep(time.Second)
				servers[0].Lag(way)
				var wg sync.WaitGroup
				for i, want := range c.want {
					wg.Go(func() {
						began := time.Now()
						if _, err := l.TryAcquire(t.Context(), fmt.Sprint(i)); err != nil {
							t.Error(err)
						}
						if took := time.Since(began); took != want {
							t.Errorf("call %d took %v, want %v", i, took, want)
						}
					})
					time.Sleep(time.Millisecond)
				}
				wg.Wait()
			})
		})
	}
}

// sky is a node whose flights take as long as it is told, and which sees which are in
// the air.
type sky struct {
	willing
	t *testing.T

	mu    sync.Mutex // guards what follows
	takes func() time.Duration
	aloft [][]string // the keys of each flight
	most  int        // flights at once
}

type skyConn struct {
	willingConn
	*sky
}

func (s *sky) Connect(context.Context, time.Duration) (Conn, error) { return skyConn{"sky", s}, nil }

func (c skyConn) Peer() Peer {
	p := c.willingConn.Peer()
	p.RoundTrip = time.Millisecond
	return p
}

func (c skyConn) Send(ctx context.Context, flight []*Op) error {
	var keys []string
	for _, op := range flight {
		keys = append(keys, op.Key)
	}
	c.mu.Lock()
	for _, other := range c.aloft {
		for _, key := range other {
			if slices.Contains(keys, key) {
				c.t.Errorf("%s is in two flights at once", key)
			}
		}
	}
	c.aloft = append(c.aloft, keys)
	c.most = max(c.most, len(c.aloft))
	took := c.takes()
	c.mu.Unlock()
	time.Sleep(took)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aloft = slices.DeleteFunc(c.aloft, func(other []string) bool { return &other[0] == &keys[0] })
	return c.willingConn.Send(ctx, flight)
}

// No key is in two flights at once, whatever is asked in what order; and after a fast
// flight there is one at a time.
func TestNoKeyIsInTwoFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draw, drawSky := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
		s := &sky{t: t, takes: func() time.Duration { return time.Millisecond + time.Duration(drawSky.IntN(5000))*time.Microsecond }}
		l := runLane(t, s, clock.NewSkewed(1), time.Second)
		ask := func() {
			for range 1000 {
				kind := []OpKind{OpAcquire, OpExtend, OpInspect, OpRelease}[draw.IntN(4)]
				r := newRound(1, Op{Kind: kind, Key: fmt.Sprint("k", draw.IntN(30)), Token: "t"}, l.clock.Now())
				r.send([]*lane{l})
				time.Sleep(time.Duration(draw.IntN(300)) * time.Microsecond)
			}
			time.Sleep(time.Second)
		}
		most := func() (most, aloft int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			most, s.most = s.most, 0
			return most, len(s.aloft)
		}
		ask()
		if most, aloft := most(); most != maxFlights || aloft > 0 {
			t.Errorf("%d flights at once, want %d; %d are in the air in the end", most, maxFlights, aloft)
		}
		s.mu.Lock()
		slow := s.takes
		fast := true
		s.takes = func() time.Duration {
			if fast {
				fast = false
				return 0
			}
			return slow()
		}
		s.mu.Unlock()
		r := newRound(1, Op{Kind: OpInspect, Key: "k"}, l.clock.Now())
		r.send([]*lane{l})
		time.Sleep(time.Second)
		most()
		ask()
		if most, _ := most(); most != 1 {
			t.Errorf("%d flights at once after a fast one, want 1", most)
		}
	})
}

// All flights that are in the air when the connection ends are unanswered, and what
// they may have set is released.
func TestFlightsEndWithTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		for _, s := range servers {
			s.Lag(10 * time.Millisecond)
		}
		l := newLocker(t, nodes, Config{DurableNodes: true})
		time.Sleep(time.Second)
		for _, s := range servers {
			s.Lag(time.Hour)
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				lease, err := l.TryAcquire(t.Context(), fmt.Sprint(i))
				if err == nil {
					t.Errorf("%v, and nobody has answered", lease)
				}
			})
			time.Sleep(time.Millisecond)
		}
		if left := leftOn(servers); len(left) != 9 {
			t.Errorf("the test shows nothing: there are %q", left)
		}
		for _, s := range servers {
			s.Lag(0)
		}
		wg.Wait()
		time.Sleep(10 * time.Second)
		if left := leftOn(servers); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// Flights that are under way on one connection at once each get their own answers, also
// where one has to be sent again.
func TestFlightsAreAnsweredInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		mustSend(t, c, acquireOp("mine", "t", time.Hour), acquireOp("his", "h", time.Hour), releaseOp("w", "t"))
		forgetScripts(t, s)
		s.Lag(10 * time.Millisecond)
		var wg sync.WaitGroup
		for _, f := range []struct {
			ops  []Op
			want string
			took time.Duration
		}{
			{[]Op{releaseOp("mine", "t")}, "granted", 20 * time.Millisecond}, // the script is sent along the second time
			{[]Op{acquireOp("his", "t", time.Hour)}, "denied(h)", 10 * time.Millisecond},
			{[]Op{acquireOp("a", "t", time.Hour), acquireOp("b", "t", time.Hour)}, "granted granted", 10 * time.Millisecond},
			{nil, "", 10 * time.Millisecond},
			{[]Op{inspectOp("c"), releaseOp("d", "t")}, "denied denied", 20 * time.Millisecond},
		} {
			wg.Go(func() {
				began := time.Now()
				if got := answers(mustSend(t, c, f.ops...)); got != f.want {
					t.Errorf("got %q, want %q", got, f.want)
				}
				if took := time.Since(began); took != f.took {
					t.Errorf("%q took %v, want %v", f.want, took, f.took)
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
	})
}

// A request that was refused for its form and sent again, whose answer is lost then, may
// have been carried out.
func TestRefusedThenLostIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		fenced := func(key string) Op {
			op := acquireOp(key, "t", time.Hour)
			op.Counter, op.CounterTTL = counterOf(key), time.Hour
			return op
		}
		mustSend(t, c, fenced("before")) // brings the script along
		forgetScripts(t, s)
		s.Lose(1, "eval")
		flight := flightOf(fenced("k"))
		if err := c.Send(t.Context(), flight); err == nil {
			t.Fatal("an answer has come: the test shows nothing")
		}
		if r := flight[0].Reply; r.Vote != quorum.Unknown || r.Nothing || strings.Contains(fmt.Sprint(r.Err), "NOSCRIPT") {
			t.Errorf("got %+v, want unknown, since the connection has ended", r)
		}
		if tokenOn(s, "k") != "t" {
			t.Error("it was not carried out: the test shows nothing")
		}
	})
}

// Once something has come that is no answer, nothing that follows is one.
func TestNothingIsReadAfterNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		go io.Copy(io.Discard, there)
		c := &redisConn{socket: newHandover(here), limit: time.Second}
		first, second := flightOf(acquireOp("a", "t", time.Hour)), flightOf(acquireOp("b", "t", time.Hour))
		var wg sync.WaitGroup
		for _, flight := range [][]*Op{first, second} {
			wg.Go(func() {
				if err := c.Send(t.Context(), flight); !errors.Is(err, errNotRESP) {
					t.Errorf("got %v, want %v", err, errNotRESP)
				}
			})
			synctest.Wait()
		}
		io.WriteString(there, "nonsense\r\n$-1\r\n$-1\r\n")
		wg.Wait()
		if got := first[0].Reply.Vote.String() + " " + second[0].Reply.Vote.String(); got != "unknown unknown" {
			t.Errorf("got %s", got)
		}
	})
}

// Whichever of a far node's flights meets the end of the connection, the lane connects
// anew at once.
func TestAnyFlightNoticesTheEnd(t *testing.T) {
	for before := range maxFlights {
		synctest.Test(t, func(t *testing.T) {
			servers, nodes := respNodes(t, 1, respfake.Options{})
			servers[0].Lag(10 * time.Millisecond)
			l := newLocker(t, nodes, Config{DurableNodes: true})
			time.Sleep(time.Second)
			for i := range before { // each has another take the next
				if _, err := l.Inspect(t.Context(), fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			servers[0].Lose(1) // and nothing is owed for it, which would be sent at once
			if _, err := l.Inspect(t.Context(), "lost"); err == nil {
				t.Fatal("an answer has come: the test shows nothing")
			}
			time.Sleep(time.Second)
			if n := servers[0].Accepted(); n != 2 {
				t.Errorf("%d connections a second after the end of the first, want 2", n)
			}
		})
	}
}
