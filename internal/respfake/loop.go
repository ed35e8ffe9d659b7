package respfake

import (
	"io"
	"syscall"
	"time"
)

// loop is the server's only goroutine; Close waits for it.
func (s *Server) loop() {
	defer close(s.done)
	for {
		s.mu.Lock()
		now := time.Now()
		next, more := s.step(now)
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return
		}
		var wait patience
		if more {
			wait.shorten(next.Sub(now))
		}
		wait.until(s.wake)
	}
}

func (s *Server) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// step serves everything that has arrived by now and returns when the next bytes
// do, if any are under way.
func (s *Server) step(now time.Time) (next time.Time, more bool) {
	for !s.hung {
		c, at := s.earliest()
		if c == nil {
			break
		}
		if at.After(now) {
			return at, true
		}
		s.drain(c, now)
		s.serve(c, now)
	}
	return time.Time{}, false
}

// earliest picks the session whose unread bytes arrived first; of two at the same
// instant the older session, so that a run repeats.
func (s *Server) earliest() (first *session, at time.Time) {
	for _, c := range s.sessions {
		t, ok := c.in.next()
		if !ok {
			continue
		}
		if first == nil || t.Before(at) || t.Equal(at) && c.id < first.id {
			first, at = c, t
		}
	}
	return first, at
}

func (s *Server) drain(c *session, now time.Time) {
	var buf [4096]byte
	for {
		n, err := c.in.read(now, buf[:])
		c.query = append(c.query, buf[:n]...)
		if err != nil {
			c.ended = true
			c.in.discard()
		}
		if n == 0 {
			return
		}
	}
}

// serve runs the complete requests that a session has sent.
func (s *Server) serve(c *session, now time.Time) {
	for !c.gone {
		args, n, err := parseRequest(c.query)
		if err != nil {
			s.reply(c, err, now)
			s.hangUp(c, now)
			return
		}
		if n == 0 {
			break
		}
		c.query = c.query[n:]
		if len(args) > 0 {
			s.handle(c, args, now)
		}
	}
	if c.ended || c.lost {
		s.hangUp(c, now)
	}
}

// handle runs one request and decides what becomes of its reply.
func (s *Server) handle(c *session, args []string, now time.Time) {
	x, refused := s.resolve(c, args, now)
	lost := s.losing.take(x.name)
	if c.lost && !lost {
		s.hangUp(c, now)
		return
	}
	c.lost = lost
	answer := refused
	if answer == nil {
		answer = s.execute(x)
	}
	s.record(x, answer)
	if !lost && !s.muting.take(x.name) {
		s.reply(c, answer, now)
	}
	if c.quit {
		s.hangUp(c, now)
	}
}

func (s *Server) reply(c *session, answer any, now time.Time) {
	if c.gone || c.peer.closed {
		return
	}
	c.peer.in.send(now.Add(s.lag), appendReply(nil, answer, c.proto))
	c.peer.wake()
}

// hangUp ends a session as close does to a socket: requests that nobody read are
// lost, replies that were sent still arrive, and the client sees a reset instead
// of an orderly end when something it had sent was thrown away.
func (s *Server) hangUp(c *session, now time.Time) {
	if c.gone {
		return
	}
	var end error = io.EOF
	if c.in.readable(now) {
		end = syscall.ECONNRESET
		c.peer.broken = true
	}
	c.gone = true
	delete(s.sessions, c.id)
	if !c.peer.closed {
		c.peer.in.finish(now.Add(s.lag), end)
		c.peer.wake()
	}
}

func (s *Server) cut(now time.Time) {
	for _, c := range s.sessions {
		s.hangUp(c, now)
	}
}
