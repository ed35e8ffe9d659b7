package redlock

import (
	"net"
	"sync"
	"testing"
)

// faultProxy stands between one client and one server.
type faultProxy struct {
	listener net.Listener
	server   string         // its address
	work     sync.WaitGroup // what it has started; closed waits for it

	mu      sync.Mutex // guards what follows
	cut     bool       // connections end, and no new ones come about
	flowing chan struct{}
	closed  bool
	sockets map[net.Conn]bool
	ended   int // connections that were cut
	held    int // packets that a hole has held back
}

// proxyTo starts a proxy to a server that ends with the test.
func proxyTo(t testing.TB, server string) *faultProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{listener: l, server: server, flowing: make(chan struct{}), sockets: map[net.Conn]bool{}}
	close(p.flowing)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Heal()
		p.mu.Lock()
		p.endAll()
		p.mu.Unlock()
		p.work.Wait()
	})
	return p
}

// Addr is where the client is to connect to.
func (p *faultProxy) Addr() string { return p.listener.Addr().String() }

// Cut resets all connections, and new ones as they come.
func (p *faultProxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.ended += len(p.sockets) / 2
	p.endAll()
}

// Hole lets nothing through in either direction, new connections included. Nobody
// is told.
func (p *faultProxy) Hole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flowing = make(chan struct{})
}

// Heal ends both. What a hole has held back arrives now.
func (p *faultProxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

// faults is how many connections were cut, and packets held back.
func (p *faultProxy) faults() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended + p.held
}

// endAll resets all connections. p.mu is held.
func (p *faultProxy) endAll() {
	for c := range p.sockets {
		reset(c)
	}
	clear(p.sockets)
}

func reset(c net.Conn) {
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func (p *faultProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

func (p *faultProxy) serve(client net.Conn) {
	p.flow()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		reset(client)
		return
	}
	p.mu.Lock()
	if p.cut || p.closed {
		p.mu.Unlock()
		reset(client)
		reset(server)
		return
	}
	p.sockets[client], p.sockets[server] = true, true
	p.mu.Unlock()
	p.work.Go(func() { p.carry(client, server) })
	p.carry(server, client)
}

// carry takes what comes from one end to the other, until one of them has ended.
func (p *faultProxy) carry(from, to net.Conn) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.flow()
			to.Write(b[:n]) // lost if that end has gone
		}
		if err != nil {
			break
		}
	}
	p.flow() // nor does an end get through
	from.Close()
	to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sockets, from)
	delete(p.sockets, to)
}

// flow waits until something may pass.
func (p *faultProxy) flow() {
	p.mu.Lock()
	flowing := p.flowing
	select {
	case <-flowing:
	default:
		p.held++
	}
	p.mu.Unlock()
	<-flowing
}
