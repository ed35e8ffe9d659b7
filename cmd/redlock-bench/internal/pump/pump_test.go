package pump

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

func TestCommandsAreRESP(t *testing.T) {
	if got := string(command("SET", "k", "")); got != "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n" {
		t.Errorf("%q", got)
	}
}

func TestFlightHasARequestAndAnAnswerForEachKey(t *testing.T) {
	for name, want := range map[string]struct{ sets, evals, acquired, released int }{
		"plain":   {3, 3, 3 * len("+OK\r\n"), 3 * len(":1\r\n")},
		"batched": {3, 1, 3 * len("+OK\r\n"), len(":3\r\n")},
	} {
		s, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		steps := s.steps("p:", 7, 3)
		if len(steps) != 2 || strings.Count(string(steps[0].request), "SET\r\n") != want.sets || strings.Count(string(steps[1].request), "EVALSHA") != want.evals ||
			len(steps[0].answer) != want.acquired || len(steps[1].answer) != want.released {
			t.Errorf("%s: %q", name, steps)
		}
		if strings.Count(string(steps[0].request), "p:pump:7:") != 3 {
			t.Errorf("%s: keys are not under the prefix: %q", name, steps[0].request)
		}
	}
	if _, err := Named("none"); err == nil {
		t.Error("a scheme called none")
	}
}

func TestPumpAcquiresAndReleases(t *testing.T) {
	redisproc.Require(t)
	s, err := redisproc.Start(t.Context(), redisproc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, scheme := range Schemes {
		p, err := Open(Setup{URLs: []string{"redis://" + s.Addr()}, Prefix: "p:", Scheme: scheme, Threads: 2, Flight: 4})
		if err != nil {
			t.Fatal(err)
		}
		p.Start()
		for p.Cycles() < 16 {
			time.Sleep(time.Millisecond)
		}
		if err := p.Stop(); err != nil || p.Cycles()%4 != 0 {
			t.Errorf("%s: %v after %d cycles", scheme.Name, err, p.Cycles())
		}
		p.Close()
	}
}

// What is not as it should be must not count as done.
func TestPumpNoticesAWrongAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					if strings.Contains(line, "LOAD") {
						conn.Write([]byte("+x\r\n"))
					}
					if strings.Contains(line, "PX") {
						conn.Write([]byte("$-1\r\n"))
					}
				}
			}()
		}
	}()
	_, err = Open(Setup{URLs: []string{"redis://" + l.Addr().String()}, Scheme: Schemes[0], Threads: 1, Flight: 1})
	if err == nil || !strings.Contains(err.Error(), `"$-1\r\n" was answered where "+OK\r\n" should be`) {
		t.Errorf("%v", err)
	}
}

func TestPumpSaysWhatItCannotReach(t *testing.T) {
	for u, want := range map[string]string{
		"redis://:hunter2@h:x":   "cannot be read",
		"rediss://:hunter2@h:1":  "without TLS",
		"redis://127.0.0.1:1":    "connection refused",
		"unix://:hunter2@/tmp/x": "without TLS",
	} {
		_, err := Open(Setup{URLs: []string{u}, Scheme: Schemes[0], Threads: 1, Flight: 1})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", u, err)
		}
	}
}
