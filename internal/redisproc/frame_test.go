package redisproc

import (
	"slices"
	"strings"
	"testing"
)

func TestFramesAreWholeValues(t *testing.T) {
	values := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(12345678901234567890\r\n",
		"$0\r\n\r\n", "$4\r\na\r\nb\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n",
		"*0\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "~1\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n", "*2\r\n*1\r\n:1\r\n$-1\r\n",
		"%1\r\n+k\r\n*1\r\n:1\r\n", "|1\r\n+k\r\n+v\r\n:7\r\n",
		"PING\r\n", "GET k\n", "\r\n", "$x\r\n", "*\r\n",
	}
	all := strings.Join(values, "")
	for cut := range len(all) + 1 {
		whole, rest := frames([]byte(all[:cut]))
		more, none := frames(append(slices.Clone(rest), all[cut:]...))
		var got []string
		for _, value := range append(whole, more...) {
			got = append(got, string(value))
		}
		if !slices.Equal(got, values) || len(none) > 0 {
			t.Fatalf("cut at %d: %q, %q", cut, got, none)
		}
	}
}

func TestCommandIsTheFirstWord(t *testing.T) {
	for request, want := range map[string]string{
		"*2\r\n$3\r\nGeT\r\n$1\r\nk\r\n": "get",
		"*1\r\n$4\r\nPING\r\n":           "ping",
		"SET k v\r\n":                    "set",
		"PING\n":                         "ping",
		"*\r\n":                          "*",
		"\r\n":                           "",
	} {
		if got := command([]byte(request)); got != want {
			t.Errorf("%q: %q, want %q", request, got, want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, seed := range []string{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "$9223372036854775807\r\n", "%9223372036854775807\r\n+a\r\n", "|0\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := frame(b)
		if n < 0 || n > len(b) {
			t.Fatalf("%d of %d", n, len(b))
		}
		if n > 0 && frame(b[:n]) != n || n > 1 && frame(b[:n-1]) != 0 {
			t.Errorf("%q is more than one value", b[:n])
		}
		command(b)
	})
}
