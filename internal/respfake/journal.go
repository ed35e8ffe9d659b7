package respfake

import (
	"fmt"
	"slices"
	"time"
)

// An Entry is one request that the server has taken up, in the order it did.
type Entry struct {
	Conn int64     // client id of the connection; ids repeat after a restart
	At   time.Time // when it was run
	Name string    // lower case, with the subcommand: "set", "client|kill"
	Args []string  // what followed the name
	Err  string    // the error it was answered with, or "" when it ran
}

// String is the request on one line; long arguments, such as scripts, are cut.
func (e Entry) String() string {
	line := fmt.Sprintf("%s conn %d: %s", e.At.Format("15:04:05.000000"), e.Conn, e.Name)
	for _, arg := range e.Args {
		line += fmt.Sprintf(" %.48q", arg)
	}
	if e.Err != "" {
		line += " -> " + e.Err
	}
	return line
}

func (s *Server) record(x *call, answer any) {
	e := Entry{Conn: x.ses.id, At: x.now, Name: x.name, Args: slices.Clone(x.args)}
	if err, ok := answer.(error); ok {
		e.Err = err.Error()
	}
	s.journal = append(s.journal, e)
}

// Log returns every request so far, also those the server refused, or only those
// of the named commands, which are named as for Lose.
func (s *Server) Log(commands ...string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Entry
	for _, e := range s.journal {
		if len(commands) == 0 || matches(e.Name, commands) {
			out = append(out, e)
		}
	}
	return out
}
