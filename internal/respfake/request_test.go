package respfake

import (
	"slices"
	"strings"
	"testing"
)

func TestRequestsAreParsedPieceByPiece(t *testing.T) {
	whole := request("SET", "a key\r\nwith\x00 everything", "")
	for cut := range whole {
		if args, n, err := parseRequest(whole[:cut]); n != 0 || err != nil {
			t.Fatalf("%q: %q, %d, %v", whole[:cut], args, n, err)
		}
	}
	args, n, err := parseRequest(append(slices.Clone(whole), "*1\r\n$4\r\nPI"...))
	if !slices.Equal(args, []string{"SET", "a key\r\nwith\x00 everything", ""}) || n != len(whole) || err != nil {
		t.Fatalf("%q, %d, %v", args, n, err)
	}
}

func TestProtocolErrorClosesTheConnection(t *testing.T) {
	for sent, want := range map[string]string{
		"*x\r\n":                  "invalid multibulk length",
		"*1\r\n:3\r\n":            "expected '$', got ':'",
		"*1\r\n$-1\r\n":           "invalid bulk length",
		"*99999999999999999999\r": "",
	} {
		bubble(t, Options{}, func(t *testing.T, s *Server) {
			w := connect(t, s)
			w.Write([]byte(sent))
			if want == "" {
				return // not complete: nothing to say yet
			}
			if got := w.receive(t); got != "-ERR Protocol error: "+want {
				t.Errorf("%q: %s", sent, got)
			}
			if reply, err := readReply(w.r); err == nil {
				t.Errorf("%q: then %s", sent, reply)
			}
		})
	}
}

func TestEmptyRequestsAreSkipped(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.Write([]byte("*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n"))
		if got := w.receive(t); got != "+PONG" || len(s.Log()) != 1 {
			t.Errorf("%s, log %v", got, s.Log())
		}
	})
}

// Whatever is taken for a whole request is the request it would be if written
// properly, and never more than was sent.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
	f.Add([]byte("*0\r\n"))
	f.Add([]byte("*3\r\n$-1\r\n"))
	f.Add([]byte("$5\r\nhello\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args, n, err := parseRequest(b)
		if n < 0 || n > len(b) || err != nil && n != 0 {
			t.Fatalf("%d of %d, %v", n, len(b), err)
		}
		if len(args) == 0 {
			return
		}
		again, m, err := parseRequest(request(args...))
		if !slices.Equal(args, again) || m != len(request(args...)) || err != nil {
			t.Fatalf("%q, then %q: %v", args, again, err)
		}
	})
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"*", "a/b", true}, {"a*c", "abbc", true}, {"a*c", "abb", false}, {"?", "", false}, {"a?c", "abc", true},
		{"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[^a-c]x", "bx", false}, {"[^a-c]x", "dx", true}, {`[\]]`, "]", true}, {"[ab", "b", true},
		{"[", "x", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true}, {"", "", true}, {"", "a", false}, {"**a", "ba", true},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

func TestSlots(t *testing.T) {
	for key, want := range map[string]int{"123456789": 12739, "foo{bar}{zap}": 5061, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "{abc": 444} {
		if got := slot(key); got != want {
			t.Errorf("slot(%q) = %d, want %d", key, got, want)
		}
	}
	if !oneSlot(nil) || !oneSlot([]string{"{x}a", "{x}b"}) || oneSlot([]string{"a", "b"}) {
		t.Error("oneSlot")
	}
}

func TestLogCanBeFiltered(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.ask(t, "set Key v")
		w.ask(t, "Client ID")
		w.ask(t, "NONSENSE")
		if log := s.Log("SET"); len(log) != 1 || log[0].Name != "set" || !slices.Equal(log[0].Args, []string{"Key", "v"}) || log[0].Conn != 1 {
			t.Errorf("set: %v", log)
		}
		if log := s.Log("client", "nonsense"); len(log) != 2 || log[0].Name != "client|id" || !strings.Contains(log[1].String(), "unknown command") {
			t.Errorf("client, nonsense: %v", log)
		}
		if log := s.Log("client|kill"); len(log) != 0 {
			t.Errorf("client|kill: %v", log)
		}
	})
}
