package redlock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

// A connection that was idle is still the same node's in either version of the protocol.
func TestPingIsAnsweredInBothVersions(t *testing.T) {
	for _, proto := range []int{2, 3} {
		s := newRespServer(t, respfake.Options{})
		o := respOptions(s, 0)
		o.Protocol = proto
		c := dialConn(t, Redis(o), connLimit)
		if err := c.Send(t.Context(), nil); err != nil {
			t.Errorf("RESP%d: %v", proto, err)
		}
		mustSend(t, c, acquireOp("k", "t", time.Minute))
	}
}

// tornSocket takes only a part of the second request, and counts them.
type tornSocket struct {
	net.Conn
	requests int
}

func (s *tornSocket) Write(b []byte) (int, error) {
	if s.requests++; s.requests == 2 {
		return len(b) / 2, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

// Nothing is sent behind a part of a request, also while what was sent before it is not
// answered yet; and what was, has its answer.
func TestNothingFollowsAPartOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		socket := &tornSocket{Conn: here}
		c := &redisConn{socket: newHandover(socket), limit: time.Second}
		var sends sync.WaitGroup
		var flights [3][]*Op
		var errs [3]error
		for i, key := range []string{"whole", "torn", "after"} {
			flights[i] = flightOf(acquireOp(key, "t", time.Minute))
			sends.Go(func() { errs[i] = c.Send(context.Background(), flights[i]) })
			synctest.Wait()
		}
		if socket.requests != 2 {
			t.Errorf("%d requests, want 2: nothing after the one that was torn", socket.requests)
		}
		io.WriteString(there, "$-1\r\n")
		sends.Wait()
		if got := answers(flights[0]); got != "granted" || errs[0] != nil {
			t.Errorf("the first is %s, %v", got, errs[0])
		}
		for i := 1; i < 3; i++ {
			if vote := flights[i][0].Reply.Vote; vote != quorum.Unknown || !errors.Is(errs[i], os.ErrDeadlineExceeded) {
				t.Errorf("number %d is %v, %v", i, vote, errs[i])
			}
		}
	})
}

// A node that reads nothing more until its answers are taken has them taken while
// the next flight is being written.
func TestAnswersAreReadWhileARequestIsWritten(t *testing.T) {
	here, there := net.Pipe() // takes nothing that is not being read
	defer there.Close()
	c := &redisConn{socket: newHandover(here), limit: 5 * time.Second}
	read := func(n int) {
		if _, err := io.ReadFull(there, make([]byte, n)); err != nil {
			t.Error(err)
		}
	}
	var sends sync.WaitGroup
	send := func() (size int) {
		op := acquireOp("k", "t", time.Minute)
		sends.Go(func() {
			if err := c.Send(context.Background(), []*Op{&op}); err != nil || op.Reply.Vote != quorum.Granted {
				t.Errorf("%+v, %v", op.Reply, err)
			}
		})
		return len(appendSet(nil, &op, false))
	}
	read(send())
	read(send()) // its answer is not waited for yet, but the first one's
	size := send()
	read(1)
	for range 2 {
		if _, err := io.WriteString(there, "$-1\r\n"); err != nil {
			t.Error(err)
		}
	}
	read(size - 1)
	io.WriteString(there, "$-1\r\n")
	sends.Wait()
}
