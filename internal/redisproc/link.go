package redisproc

import (
	"bytes"
	"context"
	"net"
	"time"
)

// link is one connection through a proxy. For each direction a goroutine reads
// flights and one delivers them, so that many are under way at once. They end
// with ctx, which ends when the sockets are closed; Close of the proxy waits.
type link struct {
	proxy    *Proxy
	client   net.Conn
	ctx      context.Context
	end      context.CancelFunc
	requests chan flight
	replies  chan flight

	// The following is guarded by the proxy's mu.
	server net.Conn // nil before the first request
	asked  []fate   // of the requests that the server has not answered
	doomed bool     // a request is to be lost, so only those to be lost follow
	gap    bool     // something has fallen into a hole
}

// flight is what arrived together: whole values, or an end.
type flight struct {
	due   time.Time
	parts [][]byte
	end   bool // nothing follows
}

// fate is what becomes of the answer to a request.
type fate int

const (
	answered fate = iota
	lost
	muted
)

// maxFlights bounds what a direction holds in memory.
const maxFlights = 256

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client, requests: make(chan flight, maxFlights), replies: make(chan flight, maxFlights)}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// start sets the requests off. Replies follow when there is a server.
func (l *link) start() {
	l.proxy.work.Go(func() { l.read(l.client, Requests) })
	l.proxy.work.Go(func() { l.deliver(Requests) })
}

// reset ends both ends as abruptly as TCP can. The proxy's mu is held.
func (l *link) reset() {
	l.client.(*net.TCPConn).SetLinger(0)
	if l.server != nil {
		l.server.(*net.TCPConn).SetLinger(0)
	}
	l.hangUp()
}

// hangUp closes both ends. The proxy's mu is held.
func (l *link) hangUp() {
	delete(l.proxy.links, l)
	l.end()
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// queue is where what goes this way waits until it is due.
func (l *link) queue(way Way) chan flight {
	if way == Requests {
		return l.requests
	}
	return l.replies
}

// read takes what comes from one end, and notes when it is due at the other.
func (l *link) read(from net.Conn, way Way) {
	var rest []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		// A copy, as the flights still use what came before.
		parts, left := frames(append(append([]byte(nil), rest...), chunk[:n]...))
		if rest = left; err != nil && len(rest) > 0 {
			parts, rest = append(parts, rest), nil // it broke off there, and so it passes
		}
		if len(parts) > 0 {
			f := flight{due: l.due(way, len(parts)), parts: parts}
			if way == Replies {
				f = l.answer(f)
			}
			if !l.put(way, f) || f.end {
				return
			}
		}
		if err != nil {
			l.put(way, flight{due: l.due(way, 0), end: true})
			return
		}
	}
}

// due is when this many values that come now are to arrive, if what came before
// them has arrived by then.
func (l *link) due(way Way, values int) time.Time {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	delay, count := p.late, &p.tally.Late
	if way == Replies {
		delay, count = p.lag, &p.tally.Lagged
	}
	if delay > 0 {
		*count += values
	}
	return time.Now().Add(delay)
}

func (l *link) put(way Way, f flight) bool {
	select {
	case l.queue(way) <- f:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// answer takes from a flight of replies those that are not to arrive.
func (l *link) answer(f flight) flight {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts [][]byte
	for _, reply := range f.parts {
		of := answered
		if reply[0] != '>' && len(l.asked) > 0 { // a push answers nobody
			of, l.asked = l.asked[0], l.asked[1:]
		}
		switch of {
		case answered:
			parts = append(parts, reply)
		case muted:
			p.tally.Muted++
		case lost:
			p.tally.Lost++
			f.end = f.end || len(l.asked) == 0
		}
	}
	f.parts = parts
	return f
}

// deliver takes what goes this way to its end when it is due.
func (l *link) deliver(way Way) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var f flight
		select {
		case f = <-l.queue(way):
		case <-l.ctx.Done():
			return
		}
		timer.Reset(time.Until(f.due))
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		if through, open := l.passes(f, way); !open {
			return
		} else if !through {
			continue
		}
		if way == Replies {
			l.toClient(f)
		} else {
			l.toServer(f)
		}
	}
}

// passes waits at a hold. Not through is what falls into a hole, and not open the
// link when it has ended meanwhile.
func (l *link) passes(f flight, way Way) (through, open bool) {
	p := l.proxy
	for first := true; ; first = false {
		p.mu.Lock()
		hole, hold, changed := p.holes&way != 0, p.holds&way != 0, p.changed
		if hole {
			l.gap = true
			for _, part := range f.parts {
				p.tally.Swallowed += len(part)
			}
		} else if hold && first {
			p.tally.Held++
		}
		p.mu.Unlock()
		if hole || !hold {
			return !hole, true
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return false, false
		}
	}
}

// toClient delivers a flight of replies.
func (l *link) toClient(f flight) {
	l.client.Write(bytes.Join(f.parts, nil)) // lost if the client has gone
	if f.end {
		l.proxy.mu.Lock()
		defer l.proxy.mu.Unlock()
		l.hangUp()
	}
}

// toServer delivers a flight of requests, and decides what becomes of each.
func (l *link) toServer(f flight) {
	if !l.reach(f.end) {
		return
	}
	var requests []byte
	p := l.proxy
	p.mu.Lock()
	for _, request := range f.parts {
		of := answered
		switch {
		case p.lose.take(request):
			of, l.doomed = lost, true
		case l.doomed:
			continue
		case p.mute.take(request):
			of = muted
		}
		l.asked = append(l.asked, of)
		requests = append(requests, request...)
	}
	server := l.server
	p.mu.Unlock()
	// At once, so that the server does not answer the first of them alone.
	server.Write(requests) // lost if the server has gone
	if f.end {
		server.(*net.TCPConn).CloseWrite()
	}
}

// reach connects to the server if that has not been done yet. If it cannot be, or
// the client has gone before it asked for anything, the link ends.
func (l *link) reach(gone bool) bool {
	p := l.proxy
	p.mu.Lock()
	there := l.server != nil
	if !there && gone {
		l.hangUp()
	}
	p.mu.Unlock()
	if there || gone {
		return there
	}
	var d net.Dialer
	server, err := d.DialContext(l.ctx, "tcp", p.server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		l.reset()
		return false
	}
	l.server = server
	if l.ctx.Err() != nil {
		l.reset()
		return false
	}
	p.work.Go(func() { l.read(server, Replies) })
	p.work.Go(func() { l.deliver(Replies) })
	return true
}
