package redisproc

import (
	"net"
	"slices"
	"sync"
	"time"
)

// A Proxy stands between a client and a server, as the network does, and does to
// what passes what networks do. One for each client and server lets each pair
// have faults of its own.
//
// It reads RESP without TLS, so a request is a command, however many arrive
// together, and each must have one answer: no subscriptions, no CLIENT REPLY.
// What arrives together passes together. Nothing overtakes anything in its
// direction. At most 256 such flights are under way in a direction; then whoever
// sends has to wait.
//
// Faults add up, and each lasts until it is replaced by another of its kind or
// healed. The methods may be called from several goroutines at once.
type Proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup // what it has started; Close waits for it

	mu         sync.Mutex // guards what follows
	closed     bool
	cut        bool
	holes      Way
	holds      Way
	late, lag  time.Duration
	lose, mute ration
	links      map[*link]bool
	changed    chan struct{} // closed when what is held may pass
	tally      Tally
}

// Way is a direction through a proxy, or both of them.
type Way int

const (
	Requests Way = 1 << iota // from the client to the server
	Replies                  // from the server to the client
	Both     = Requests | Replies
)

// A Tally is what the faults of a proxy have done so far: a test that wants to
// show something under a fault sees here that there was one.
type Tally struct {
	Cut       int // connections reset by Cut, or by Heal behind a hole
	Refused   int // connections reset as soon as they were made
	Swallowed int // bytes that have fallen into a hole
	Held      int // flights that have been stopped by a hold, at the head of their queue
	Late      int // requests that were made late
	Lagged    int // replies that were made late
	Lost      int // requests that ran on connections that ended instead of an answer
	Muted     int // requests that ran and whose reply was dropped
}

// NewProxy starts a proxy to the server at this TCP address. Nothing is sent to
// the server before a client sends something. The caller closes the proxy.
func NewProxy(server string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, server: server, links: map[*link]bool{}, changed: make(chan struct{})}
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where the client is to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets all connections at both ends, and new ones as they come. What was
// under way is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for l := range p.links {
		p.reset(l)
	}
}

// Hole swallows what goes this way, ends of connections included; new ones are
// accepted, and nobody is told. A hole for requests lets the replies to earlier
// ones through; in one for replies requests run. It takes the place of another
// hole.
func (p *Proxy) Hole(way Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holes = way
	p.rouse()
}

// Hold stops what goes this way, ends of connections included; new ones are
// accepted, and nobody is told. Unlike what falls into a hole it arrives when
// healed, as what TCP sends again after an outage does. It takes the place of
// another hold.
func (p *Proxy) Hold(way Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = way
	p.rouse()
}

// Late makes requests reach the server d late, and ends of connections as well:
// what a client has sent arrives even if it hangs up. It applies to what
// comes from now on; what is under way keeps its time.
func (p *Proxy) Late(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = d
}

// Lag makes replies arrive d late; their requests run at once. It applies to what
// comes from now on; what is under way keeps its time.
func (p *Proxy) Lag(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag = d
}

// Lose lets the next n requests run and closes their connections instead of
// answering. What comes behind them on their connection does not run. When
// commands are named, only those count. A new call replaces what is left of the
// one before.
func (p *Proxy) Lose(n int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = ration{n, commands}
}

// Mute lets the next n requests run and drops their replies; the connections
// stay. So who waits for the answer may take that to a later request for it.
// Commands are as for Lose.
func (p *Proxy) Mute(n int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = ration{n, commands}
}

// Heal ends all faults. What was held arrives now, what is late keeps its time.
// Connections that a hole has swallowed something of are reset: a stream with a
// gap in it is no connection.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.holes, p.holds, p.late, p.lag = false, 0, 0, 0, 0
	p.lose, p.mute = ration{}, ration{}
	for l := range p.links {
		if l.gap {
			p.reset(l)
		}
	}
	p.rouse()
}

// Tally is what has really happened.
func (p *Proxy) Tally() Tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally
}

// Close resets all connections, accepts no more, and returns when nothing of the
// proxy runs any longer. Closing twice is harmless.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.reset()
	}
	p.mu.Unlock()
	p.listener.Close()
	p.work.Wait()
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.welcome(client)
	}
}

func (p *Proxy) welcome(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := newLink(p, client)
	if p.cut || p.closed {
		p.tally.Refused++
		l.reset()
		return
	}
	p.links[l] = true
	l.start()
}

// reset ends a connection that a fault has ended. p.mu is held.
func (p *Proxy) reset(l *link) {
	p.tally.Cut++
	delete(p.links, l)
	l.reset()
}

// rouse has everything that is held look again. p.mu is held.
func (p *Proxy) rouse() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// A ration is a number of requests that something happens to.
type ration struct {
	left     int
	commands []string // none: any
}

// take says whether it happens to this one.
func (r *ration) take(request []byte) bool {
	if r.left <= 0 || len(r.commands) > 0 && !slices.Contains(r.commands, command(request)) {
		return false
	}
	r.left--
	return true
}
