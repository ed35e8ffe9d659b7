package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// Nothing but these forms goes to a node: no SETNX with an EXPIRE after it, between
// which a crash leaves a lock for ever.
//
// field-reports: 64
func TestOnlyTheDocumentedCommandsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		cfg := Config{TTL: 1500 * time.Millisecond, KeyPrefix: "lock:"}
		l, rival := newLocker(t, nodes, cfg), newLocker(t, nodes, cfg)
		lease := acquire(t, l, "k")
		synctest.Wait() // on all nodes
		if _, err := rival.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want ErrHeld", err)
		}
		if _, err := l.Inspect(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if err := lease.Extend(t.Context(), 2*time.Second); err != nil {
			t.Error(err)
		}
		lease.KeepAlive()
		time.Sleep(5 * time.Second)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * idlePing)
		for _, l := range []*Locker{l, rival} {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		token := string(lease.Token())
		for i, s := range servers {
			handshake := []string{"client|id", "client|setinfo", "hello", "info"}
			want := slices.Concat(handshake, []string{"eval", "evalsha", "get", "pttl", "set"})
			if got := commandsIn(s.Log()); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("node %d was sent %q, want %q", i+1, got, want)
			}
			for _, e := range s.Log("set") {
				if e.Args[1] != token { // the rival's
					e.Args[1] = token
				}
				if want := []string{"lock:k", token, "nx", "px", "1500", "get"}; !slices.Equal(e.Args, want) {
					t.Errorf("SET %q, want %q", e.Args, want)
				}
			}
			for _, e := range s.Log("evalsha") {
				switch e.Args[0] {
				case scripts[OpRelease].sum:
					e.Args = append(e.Args, "")
				case scripts[OpExtend].sum:
					if ttl := e.Args[4]; ttl != "2000" && ttl != "1500" {
						t.Errorf("extended by %s", ttl)
					}
				default:
					t.Errorf("script %s", e.Args[0])
				}
				if want := []string{"1", "lock:k", token}; !slices.Equal(e.Args[1:4], want) {
					t.Errorf("EVALSHA %q, want %q", e.Args[1:], want)
				}
			}
		}
	})
}

// A node counts whole milliseconds. It is never told less than is believed, and
// never 0, which deletes the key.
//
// field-reports: 19, 110
func TestTimesGoOutInWholeMillisecondsRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		for i, test := range []struct {
			ttl  time.Duration
			want string
		}{
			{1, "1"},
			{999 * time.Microsecond, "1"},
			{time.Millisecond, "1"},
			{time.Millisecond + 1, "2"},
			{1500 * time.Microsecond, "2"},
			{10*time.Second - 1, "10000"},
			{10 * time.Second, "10000"},
			{maxTTLLimit, "31536000000"},
		} {
			key := fmt.Sprint(i)
			mustSend(t, c, acquireOp(key, "a", test.ttl), extendOp(key, "a", test.ttl))
			sets, calls := s.Log("set"), s.Log("evalsha")
			if args := sets[len(sets)-1].Args; !slices.Equal(args, []string{key, "a", "nx", "px", test.want, "get"}) {
				t.Errorf("%v: SET %q", test.ttl, args)
			}
			if args := calls[len(calls)-1].Args; args[len(args)-1] != test.want {
				t.Errorf("%v: extended by %s", test.ttl, args[len(args)-1])
			}
		}
	})
}

// A lane's answers are those of the node it speaks to, whatever the flights
// before have left in what is used again for each of them. The node in memory
// that stands for a Redis in other tests obeys the same contract.
func TestFlightsAreAnsweredLikeANodes(t *testing.T) {
	for name, test := range map[string]struct {
		server respfake.Options
		proto  int
	}{
		"Redis 7":        {},
		"Redis 7, RESP3": {proto: 3},
		"Redis 8":        {server: respfake.Options{Version: "8.0.2"}},
		"Redis 6.2":      {server: respfake.Options{Version: "6.2.14"}},
		"cluster":        {server: respfake.Options{Cluster: true}},
		"no HELLO":       {server: respfake.Options{NoHello: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, test.server)
				o := respOptions(s, 0)
				o.Protocol = test.proto
				c := dialConn(t, Redis(o), connLimit)
				// What is sent again as its script was not known is carried out late.
				mustSend(t, c, extendOp("scripts", "t", time.Hour), releaseOp("scripts", "t"))
				mustSend(t, c, fencedOp(acquireOp("scripts", "t", time.Hour), 1), stampOp("scripts", "t", 2))
				mustSend(t, c, releaseOp("scripts", "t"))
				old := test.server.Version == "6.2.14"
				model := newMemNode(0)
				draw := rand.New(rand.NewPCG(1, 2))
				sizes := []int{1, 1, 2, 3, 40, maxFlight}
				for n := range 150 {
					flight := randomFlight(draw, sizes[draw.IntN(len(sizes))])
					want := make([]Op, len(flight))
					for i, op := range flight {
						want[i] = *op
						there := model.holder(op.Key) != ""
						model.apply(&want[i])
						if old && op.Kind == OpAcquire && op.Counter == "" && there {
							want[i].Reply = Reply{Vote: quorum.Denied} // it does not tell by whom
						}
					}
					if err := c.Send(t.Context(), flight); err != nil {
						t.Fatal(err)
					}
					for i, op := range flight {
						if op.Reply != want[i].Reply {
							t.Fatalf("flight %d, %v of %q by %q: %+v, want %+v", n, op.Kind, op.Key, string(op.Token), op.Reply, want[i].Reply)
						}
					}
					time.Sleep(time.Duration(draw.IntN(1500)) * time.Millisecond)
				}
			})
		})
	}
}

// randomFlight is a flight that a lane might send. There are few tokens, so that
// some are right.
func randomFlight(draw *rand.Rand, size int) []*Op {
	var cut cutter
	calls := make([]*call, 0, size)
	fenced := draw.IntN(2) == 0
	for len(calls) < size {
		op := Op{
			Kind:  OpKind(draw.IntN(5)),
			Key:   fmt.Sprint("k", draw.IntN(2*size)),
			Token: Token(fmt.Sprint("t", draw.IntN(3))),
			TTL:   time.Duration(1 + draw.Int64N(int64(4*time.Second))),
		}
		if fenced {
			op.Key = "f" + op.Key
			op.Counter, op.CounterTTL = counterOf(op.Key), time.Hour
			op.Fence = fence.Token(time.Now().UnixMicro() + draw.Int64N(4e6) - 2e6)
		} else if op.Kind == OpStamp {
			continue
		}
		if cut.fits(&op) {
			calls = append(calls, &call{op: &op})
		}
	}
	var flight []*Op
	for _, c := range cut.arrange(nil, calls) {
		flight = append(flight, c.op)
	}
	return flight
}

// Of a flight whose answers stop coming in the middle, those that came stand,
// and the others are unknown: above all, they are not what the same place in the
// flight before was answered.
func TestAnswersThatDidNotComeAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		o := respOptions(s, 0)
		var socket *shortConn
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := s.Dialer()(ctx, network, addr)
			socket = &shortConn{c, -1}
			return socket, err
		}
		for came := range 10 {
			c := dialConn(t, Redis(o), connLimit)
			var before, after []Op
			for i := range 10 {
				before = append(before, acquireOp(fmt.Sprint("a", came, "/", i), "t", time.Hour))
				after = append(after, acquireOp(fmt.Sprint("b", came, "/", i), "t", time.Hour))
			}
			mustSend(t, c, before...)
			socket.left = came*len("$-1\r\n") + 2
			flight := flightOf(after...)
			err := c.Send(t.Context(), flight)
			if !errors.Is(err, net.ErrClosed) {
				t.Fatalf("got %v, want the end of the connection", err)
			}
			for i, op := range flight {
				switch r := op.Reply; {
				case i < came && r != Reply{Vote: quorum.Granted}:
					t.Errorf("%d answers came; the %dth: %+v", came, i, r)
				case i >= came && (r.Vote != quorum.Unknown || !errors.Is(r.Err, net.ErrClosed)):
					t.Errorf("%d answers came; the %dth: %+v, want unknown and why", came, i, r)
				}
				if tokenOn(s, op.Key) != "t" {
					t.Errorf("%q was not carried out: the test shows nothing", op.Key)
				}
			}
		}
	})
}

// A request whose answer is lost has been carried out, and is never sent again
// behind the lane's back: go-redis would, by default.
//
// field-reports: 29
func TestNothingIsSentTwice(t *testing.T) {
	for name, fault := range map[string]func(s *respfake.Server, command string){
		"lost":  func(s *respfake.Server, command string) { s.Lose(1, command) },
		"muted": func(s *respfake.Server, command string) { s.Mute(1, command) },
	} {
		for _, op := range []Op{acquireOp("k", "t", time.Minute), extendOp("k", "t", time.Minute), inspectOp("k"), releaseOp("k", "t")} {
			t.Run(fmt.Sprintf("%s %s", op.Kind, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newRespServer(t, respfake.Options{})
					n := Redis(respOptions(s, 0))
					warm := dialConn(t, n, connLimit)
					mustSend(t, warm, acquireOp("k", "t", time.Minute), extendOp("w", "t", time.Minute), releaseOp("w", "t")) // loads the scripts
					warm.Close()

					command := map[OpKind]string{OpAcquire: "set", OpInspect: "pttl"}[op.Kind]
					if command == "" {
						command = "evalsha"
					}
					c := dialConn(t, n, 300*time.Millisecond)
					before := asked(s, command)
					fault(s, command)
					flight := flightOf(op)
					start := time.Now()
					if err := c.Send(t.Context(), flight); err == nil {
						t.Error("the connection is said to live")
					}
					if took := time.Since(start); took > 300*time.Millisecond {
						t.Errorf("it took %v, the limit is 300 ms", took)
					}
					if r := flight[0].Reply; r.Vote != quorum.Unknown || r.Err == nil {
						t.Errorf("the answer is %+v, want unknown and why", r)
					}
					time.Sleep(time.Minute)
					if n := asked(s, command) - before; n != 1 {
						t.Errorf("%s was sent %d times", command, n)
					}
					if s.Accepted() != 2 {
						t.Errorf("%d connections, want 2", s.Accepted())
					}
				})
			})
		}
	}
}

// A flight is one script call for all that it releases, and one for all that it
// extends.
func TestFlightHasOneCallPerScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		mustSend(t, c, extendOp("w", "t", time.Minute), releaseOp("w", "t"))
		var ops []Op
		for _, kind := range []OpKind{OpAcquire, OpExtend, OpRelease} {
			for i := range maxFlight / 3 {
				ops = append(ops, Op{Kind: kind, Key: fmt.Sprint(kind, i), Token: "t", TTL: time.Minute})
			}
		}
		before := len(s.Log())
		mustSend(t, c, ops...)
		if got := len(s.Log()) - before; got != maxFlight/3+2 {
			t.Errorf("%d requests", got)
		}
	})
}

// The operations of a flight on one key are carried out in their order.
func TestOneKeySeveralTimesInAFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, respfake.Options{})
		c := dialConn(t, Redis(respOptions(s, 0)), connLimit)
		mustSend(t, c, extendOp("w", "t", time.Second), releaseOp("w", "t")) // loads the scripts
		flight := mustSend(t, c,
			acquireOp("k", "a", time.Second), acquireOp("k", "b", time.Second), acquireOp("k", "a", time.Second),
			extendOp("k", "a", 2*time.Second), extendOp("k", "b", time.Hour), extendOp("k", "a", 5*time.Second), extendOp("k", "a", time.Second),
			inspectOp("k"),
			releaseOp("k", "b"), releaseOp("k", "a"))
		want := "granted denied(a) granted" + " granted denied(a) granted granted" + " granted(a)" + " denied(a) granted"
		if got := answers(flight); got != want {
			t.Errorf("answers %s, want %s", got, want)
		}
		if left := flight[7].Reply.Remaining; left != 5*time.Second {
			t.Errorf("%v left after the extends", left)
		}
		if left := keysOn(s); left != nil {
			t.Errorf("left: %q", left)
		}
	})
}
