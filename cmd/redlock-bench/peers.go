package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// introduction is the command with which a connection tells the hook its
// number. miniredis gives the hook a peer but not the peer's connection, and
// only that can be closed, so each connection says first which one it is.
const introduction = "REDLOCKBENCHCONNECTION"

// peers are the connections of an embedded server.
type peers struct {
	mu   sync.Mutex // guards what follows
	last int64
	byID map[int64]*peer
	met  map[*server.Peer]*peer
}

// peer is one connection, from when it was accepted until miniredis has done
// with it.
type peer struct {
	net.Conn
	id     int64
	intro  []byte        // what it says before its own
	killed chan struct{} // closed when it was told to end
	gone   chan struct{} // closed when nothing of it will run any more
}

// Read gives the introduction first.
func (c *peer) Read(b []byte) (int, error) {
	if len(c.intro) > 0 {
		n := copy(b, c.intro)
		c.intro = c.intro[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *peer) dead() bool {
	select {
	case <-c.killed:
		return true
	default:
		return false
	}
}

// admit numbers a connection.
func (ps *peers) admit(conn net.Conn) net.Conn {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byID == nil {
		ps.byID, ps.met = make(map[int64]*peer), make(map[*server.Peer]*peer)
	}
	ps.last++
	id := strconv.FormatInt(ps.last, 10)
	c := &peer{
		Conn:   conn,
		id:     ps.last,
		intro:  fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(introduction), introduction, len(id), id),
		killed: make(chan struct{}),
		gone:   make(chan struct{}),
	}
	ps.byID[c.id] = c
	return c
}

// meet learns which connection a peer is. False means that this was no
// introduction, but a client that used its word.
func (ps *peers) meet(p *server.Peer, id string) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	n, err := strconv.ParseInt(id, 10, 64)
	c := ps.byID[n]
	if err != nil || c == nil || ps.met[p] != nil {
		return false
	}
	ps.met[p] = c
	p.OnDisconnect(func() { // called after the last command of the peer has run
		ps.mu.Lock()
		delete(ps.byID, c.id)
		delete(ps.met, p)
		ps.mu.Unlock()
		close(c.gone)
	})
	return true
}

// of is the connection of a peer, nil for the one that a script is to the
// commands it calls.
func (ps *peers) of(p *server.Peer) *peer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.met[p]
}

// client answers the CLIENT commands that miniredis does not know.
func (ps *peers) client(p *server.Peer, self *peer, sub string, args []string) bool {
	switch {
	case sub == "ID" && len(args) == 0:
		p.WriteInt(int(self.id))
	case sub == "INFO" && len(args) == 0:
		p.WriteBulk(fmt.Sprintf("id=%d addr=%s laddr=%s name=%s", self.id, self.RemoteAddr(), self.LocalAddr(), p.ClientName))
	case sub == "SETINFO" && len(args) == 2:
		p.WriteOK()
	case sub == "KILL" && len(args) == 2 && strings.EqualFold(args[0], "ID"):
		id, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || id < 1 {
			p.WriteError("ERR client-id should be greater than 0")
			return true
		}
		p.WriteInt(ps.kill(self, id))
	default:
		return false
	}
	return true
}

// kill ends a connection and returns, with how many there were to end, when
// nothing of it will run any more. As in Redis, nobody ends itself this way.
func (ps *peers) kill(by *peer, id int64) int {
	ps.mu.Lock()
	victim := ps.byID[id]
	if victim == nil || victim == by {
		ps.mu.Unlock()
		return 0
	}
	if !victim.dead() {
		close(victim.killed)
	}
	ps.mu.Unlock()
	victim.Close()
	select {
	case <-victim.gone:
	case <-by.killed: // two that kill each other must not wait for each other
	}
	return 1
}
