package respfake

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options say what kind of server it is. The zero Options are a standalone Redis
// 7.0.15 without passwords.
type Options struct {
	// Version is what the server says it is, "7.0.15" by default. Before 7.0 it
	// refuses SET with NX and GET, several INFO sections in one call and options of
	// PEXPIRE; from 7.2 on it knows CLIENT SETINFO.
	Version string
	// Cluster makes it the single member of a cluster, owner of all slots.
	Cluster bool
	// NoHello makes HELLO an unknown command, so that clients fall back to RESP2.
	NoHello bool
	// Users by name. Without an entry "default", that user has no password and may
	// run everything.
	Users map[string]User
}

// Server is one Redis process with its data, its connections and its network.
// All methods may be called from any goroutine, but not from a script's function.
type Server struct {
	opt   Options
	major int
	minor int
	wake  chan struct{} // tells the event loop that something may have arrived
	done  chan struct{} // closed when the event loop has ended

	mu       sync.Mutex // guards everything below, and both ends of every connection; never held while waiting
	closed   bool
	sessions map[int64]*session
	lastID   int64
	accepted int
	dbs      [databases]keyspace
	scripts  map[string]Script // by digest: what a test has registered
	loaded   map[string]bool   // script cache: digests a client has loaded
	info     info
	journal  []Entry
	faults
}

// databases is Redis' default number of them.
const databases = 16

// A session is the server's end of a connection. Guarded by Server.mu.
type session struct {
	id    int64
	peer  *conn
	in    stream // requests
	query []byte // read from in, not yet run
	ended bool   // the client has closed, and everything it wrote is in query
	gone  bool   // no longer served; whatever it held is discarded
	lost  bool   // its connection ends with the requests whose replies are lost
	quit  bool   // its connection ends behind the reply being sent

	db    int
	proto int
	user  *User  // nil: not authenticated
	login string // the name user has logged in by; "": default
	name  string // by CLIENT SETNAME
}

// errClientClosed ends a session's requests.
var errClientClosed = errors.New("closed by the client")

// New starts a server. The caller closes it; in a bubble, before the bubble ends.
func New(opt Options) *Server {
	if opt.Version == "" {
		opt.Version = "7.0.15"
	}
	s := &Server{
		opt:      opt,
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		scripts:  make(map[string]Script),
		sessions: make(map[int64]*session),
	}
	if _, err := fmt.Sscanf(opt.Version, "%d.%d", &s.major, &s.minor); err != nil {
		panic(fmt.Sprintf("respfake: version %q: %v", opt.Version, err))
	}
	s.boot(false)
	go s.loop()
	return s
}

// Close cuts all connections, fails all waiting dials, and returns when the
// server's goroutine has ended. Closing again is harmless.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.cut(time.Now())
	s.poke()
	s.mu.Unlock()
	<-s.done
}

// since says whether the server's version is at least this one.
func (s *Server) since(major, minor int) bool {
	return s.major > major || s.major == major && s.minor >= minor
}

// Conns is the number of connections the server has open. One that its client has
// closed counts until the server has read everything that was sent on it.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Accepted is how many connections there have ever been, restarts included.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}
