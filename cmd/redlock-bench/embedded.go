package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// embeddedTick is how often the keys of an embedded server grow older. A key
// may have been set just before, so a node's timer runs ahead by as much.
const embeddedTick = 5 * time.Millisecond

// embedded is a Redis server in this process: miniredis, with the answers it
// lacks and that tell a locker whom it reached (INFO, CLIENT ID) and that
// nothing of an old connection is still to come (CLIENT KILL).
type embedded struct {
	mini     *miniredis.Miniredis
	listener net.Listener
	runID    string
	started  time.Time
	peers    peers
	stop     chan struct{}
	running  sync.WaitGroup // the goroutines of accept and age; close waits
}

// startEmbedded starts a server on a free port of the loopback interface.
func startEmbedded() (*embedded, error) {
	id := make([]byte, 20)
	rand.Read(id) // never fails
	e := &embedded{
		mini:    miniredis.NewMiniRedis(),
		runID:   hex.EncodeToString(id),
		started: time.Now(),
		stop:    make(chan struct{}),
	}
	// This is how miniredis starts without a listener of its own: connections
	// are accepted here, because a peer that it made of one cannot be closed.
	unused, err := e.mini.Dial()
	if err != nil {
		return nil, err
	}
	unused.Close()
	e.mini.Server().SetPreHook(e.hook)
	if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		e.mini.Close()
		return nil, err
	}
	e.running.Go(e.accept)
	e.running.Go(e.age)
	return e, nil
}

// addr is the server's TCP address.
func (e *embedded) addr() *net.TCPAddr { return e.listener.Addr().(*net.TCPAddr) }

// close ends the server and its connections, and returns when they are gone.
func (e *embedded) close() error {
	close(e.stop)
	err := e.listener.Close()
	e.running.Wait()
	e.mini.Close()
	return err
}

// accept serves connections until the listener is closed.
func (e *embedded) accept() {
	for {
		conn, err := e.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			e.mini.Server().ServeConn(e.peers.admit(conn))
		}
	}
}

// age takes off every key's TTL the time that has passed, in steps of one tick
// at most. After a long pause of this process keys live longer than they
// should: that keeps a lock too long, while a large step would end locks that
// had only just been given.
func (e *embedded) age() {
	ticker := time.NewTicker(embeddedTick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case now := <-ticker.C:
			e.mini.FastForward(min(now.Sub(last), embeddedTick))
			last = now
		}
	}
}

// hook answers what miniredis does not. True means that the command is done.
func (e *embedded) hook(p *server.Peer, command string, args ...string) bool {
	if command == introduction && len(args) == 1 {
		return e.peers.meet(p, args[0])
	}
	self := e.peers.of(p)
	if self != nil && self.dead() {
		// It was killed with commands of its own still buffered.
		return true
	}
	switch {
	case command == "INFO":
		p.WriteBulk(e.info(args))
		return true
	case command == "CLIENT" && len(args) > 0 && self != nil:
		return e.peers.client(p, self, strings.ToUpper(args[0]), args[1:])
	}
	return false
}

// info is the answer to INFO for some sections, or for all of them.
func (e *embedded) info(sections []string) string {
	var b strings.Builder
	for _, s := range []struct{ name, fields string }{
		{"server", fmt.Sprintf("redis_version:7.2.0\nserver_name:miniredis\nminiredis_version:%s\n"+
			"redis_mode:standalone\nprocess_id:%d\nrun_id:%s\ntcp_port:%d\nuptime_in_seconds:%d\n",
			dependency("github.com/alicebob/miniredis/v2"), os.Getpid(), e.runID, e.addr().Port,
			int(time.Since(e.started).Seconds()))},
		{"clients", fmt.Sprintf("connected_clients:%d\n", e.mini.Server().ClientsLen())},
		{"memory", "maxmemory:0\nmaxmemory_policy:noeviction\n"},
		{"replication", "role:master\nconnected_slaves:0\nmaster_replid:" + e.runID + "\n"},
		{"cluster", "cluster_enabled:0\n"},
	} {
		if !wanted(s.name, sections) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("# " + strings.ToUpper(s.name[:1]) + s.name[1:] + "\n" + s.fields)
	}
	return strings.ReplaceAll(b.String(), "\n", "\r\n")
}

// wanted says whether INFO with these arguments asks for a section.
func wanted(name string, sections []string) bool {
	for _, s := range sections {
		switch strings.ToLower(s) {
		case name, "all", "default", "everything":
			return true
		}
	}
	return len(sections) == 0
}
