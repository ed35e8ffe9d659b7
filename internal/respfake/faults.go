package respfake

import (
	"strings"
	"time"
)

// faults are what is wrong with the server or its network. Guarded by Server.mu.
type faults struct {
	hung      bool
	refuse    bool
	blackhole bool
	late, lag time.Duration
	losing    ration
	muting    ration
	answers   map[string]string // command or "*": error text
}

// Hang stops the server as SIGSTOP stops a process: connections are accepted and
// requests taken, nothing is run and nothing answered.
func (s *Server) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = true
}

// Continue ends Hang. Before it returns, everything that has arrived meanwhile
// has been run, also what was sent on connections their clients have closed.
func (s *Server) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hung = false
	s.step(time.Now())
	s.poke()
}

// Refuse makes new dials fail at once while it is on. Connections that exist stay.
func (s *Server) Refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = on
}

// Blackhole makes new dials wait for the end of their context. A dial that waits
// is not helped by switching it off.
func (s *Server) Blackhole(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blackhole = on
}

// Lag makes replies arrive d late; requests run at once. It applies to replies
// sent from now on and, like Late, never changes the order within a connection.
func (s *Server) Lag(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = d
}

// Late makes requests reach the server d late. It applies to what clients write,
// and to their closing, from now on: bytes already under way keep their time,
// so that Late(d), a write and Late(0) let other connections overtake it.
func (s *Server) Late(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = d
}

// Lose lets the next n requests run and loses their replies: behind the last of
// them that is at hand, their connection is closed. When commands are named,
// only those count ("set", "client|kill"; "client" means all of its subcommands).
// A new call replaces what is left of the one before.
func (s *Server) Lose(n int, commands ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losing = ration{n, commands}
}

// Mute lets the next n requests run without a reply; connections stay. Commands
// are named as for Lose.
func (s *Server) Mute(n int, commands ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muting = ration{n, commands}
}

// Reply makes every request of this command fail with the given error instead of
// running, for example "READONLY You can't write against a read only replica.".
// The command is named as for Lose; "*" means every command. An empty text ends it.
func (s *Server) Reply(command, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = make(map[string]string)
	}
	s.answers[command] = text
	if text == "" {
		delete(s.answers, command)
	}
}

// answer is the error a command is to give, or "". The narrowest rule counts.
func (f *faults) answer(name string) string {
	container, _, _ := strings.Cut(name, "|")
	for _, rule := range []string{name, container, "*"} {
		if text := f.answers[rule]; text != "" {
			return text
		}
	}
	return ""
}

// Cut closes every connection. What the server has not read of them is lost.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(time.Now())
}

// Restart puts a new process in the place of the old one, as after a kill: all
// connections are cut and what the old one had not read is lost, run_id, process
// id and uptime are new, client ids start anew, and the script cache is
// empty. Keys stay only with keepData. A hang is over; other faults stay as they are.
func (s *Server) Restart(keepData bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(time.Now())
	s.hung = false
	s.boot(keepData)
}

// boot starts a process.
func (s *Server) boot(keepData bool) {
	s.lastID = 0
	s.loaded = make(map[string]bool)
	s.info.boot(s.opt)
	if !keepData {
		s.flush()
	}
}

// A ration is a number of requests that something happens to.
type ration struct {
	left     int
	commands []string // none: any
}

// take says whether it happens to this one.
func (r *ration) take(name string) bool {
	if r.left <= 0 || len(r.commands) > 0 && !matches(name, r.commands) {
		return false
	}
	r.left--
	return true
}

// matches says whether a command is among these, by its own name or as a
// subcommand of one of them.
func matches(name string, these []string) bool {
	container, _, _ := strings.Cut(name, "|")
	for _, this := range these {
		if strings.EqualFold(this, name) || strings.EqualFold(this, container) {
			return true
		}
	}
	return false
}
