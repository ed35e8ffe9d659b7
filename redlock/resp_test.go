package redlock

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// valuesOf reads text, in as small parts as its length allows, until the end or an error.
func valuesOf(text string) (all []string, err error) {
	var r values
	r.Reset(iotest.OneByteReader(strings.NewReader(text)))
	for {
		v, err := r.next()
		if err != nil {
			return all, err
		}
		switch v.kind {
		case valueText, valueError:
			all = append(all, strconv.Quote(string(v.text)))
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
}

// What a node says is read as it stands on the wire, in both versions of the protocol;
// a part of an answer is none.
func TestValuesAreRead(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		text string
		want string
		err  error
	}{
		{"+OK\r\n:7\r\n:-1\r\n", `"OK" 7 -1`, io.EOF},
		{"$-1\r\n_\r\n*-1\r\n", "nothing nothing nothing", io.EOF},
		{"$0\r\n\r\n$5\r\na\r\nbc\r\n", `"" "a\r\nbc"`, io.EOF},
		{"*2\r\n:1\r\n$3\r\nhis\r\n", `a list of 2 1 "his"`, io.EOF},
		{"-ERR no\r\n", `"ERR no"`, io.EOF},
		{"#t\r\n,1.5\r\n(123\r\n", `"#t" ",1.5" "(123"`, io.EOF},
		{"$10000\r\n" + long + "\r\n:1\r\n", `"` + long + `" 1`, io.EOF},
		{"-" + long + "\r\n:1\r\n", `"` + long + `" 1`, io.EOF},
		{">2\r\n+invalidate\r\n*2\r\n$1\r\na\r\n_\r\n:1\r\n", "1", io.EOF},
		{">1\r\n>1\r\n+x\r\n+y\r\n:1\r\n", "1", io.EOF},
		{">1\r\n*1\r\n>1\r\n*2\r\n+x\r\n+y\r\n+z\r\n:1\r\n", "1", io.EOF},
		{"=8\r\ntxt:info\r\n:1\r\n", `"info" 1`, io.EOF},
		{"=3\r\ntxt\r\n", "", errNotRESP},
		{"+" + strings.Repeat(long, 100) + "\r\n", "", errNotRESP},
		{"$3\r\nhi", "", io.EOF},
		{"$3\r\nhis", "", io.EOF},
		{"$-1", "", io.EOF},
		{"$10000\r\n" + long, "", io.EOF},
		{">2\r\n+invalidate\r\n", "", io.EOF},
		{"\r\n", "", errNotRESP},
		{"OK\r\n", "", errNotRESP},
		{"+OK\n", "", errNotRESP},
		{":one\r\n", "", errNotRESP},
		{"$x\r\n", "", errNotRESP},
		{"$-2\r\n", "", errNotRESP},
		{"$2\r\nhis\r\n", "", errNotRESP},
		{"$99999999999\r\n", "", errNotRESP},
		{"$600000000\r\n", "", errNotRESP},
		{"*2000000\r\n", "", errNotRESP},
	} {
		all, err := valuesOf(c.text)
		if got := strings.Join(all, " "); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%.40q: got %.40s and %v, want %.40s and %v", c.text, got, err, c.want, c.err)
		}
	}
}

// A length is not believed before that much has come.
func TestLengthsTakeNoRoom(t *testing.T) {
	const text = "$500000000\r\nhis"
	if n := testing.AllocsPerRun(1, func() { valuesOf(text) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			valuesOf(text)
		}
	})
	if n := result.AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("%d bytes for three that came", n)
	}
}

// endless says the same again and again, that many bytes.
type endless struct {
	says string
	left int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(b, strings.Repeat(e.says, len(b)/len(e.says)))
	e.left -= n
	return n, nil
}

// However deep lists and pushes are in each other, reading them takes no more room.
func TestDepthTakesNoRoom(t *testing.T) {
	for _, says := range []string{">1\r\n", "*1\r\n"} {
		var r values
		r.Reset(&endless{says, 32 << 20}) // more than recursion has room for
		if err := r.skip(1); err != io.EOF {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// A line without an end is given up.
func TestLinesHaveABound(t *testing.T) {
	e := &endless{"x", 1 << 20}
	var r values
	r.Reset(e)
	if v, err := r.next(); err != errNotRESP || e.left == 0 {
		t.Errorf("got %v, %v with %d bytes to come", v, err, e.left)
	}
}

// FuzzValues: whatever comes is read to its end without a panic.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"+OK\r\n", "$3\r\nhis\r\n", "*2\r\n:1\r\n_\r\n", ">1\r\n+x\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := valuesOf(string(b)); err == nil {
			t.Error("no end")
		}
		var r values
		r.Reset(bytes.NewReader(b))
		for {
			if v, err := r.next(); err != nil || v.kind == valueList && r.skip(v.n) != nil {
				return
			}
		}
	})
}

// What an answer to SET means, with GET and without.
func TestAnswersToSETAreRead(t *testing.T) {
	const token = "0b93a7c2"
	for _, c := range []struct {
		answer string
		plain  bool
		want   string
	}{
		{"$-1\r\n", false, "granted"},
		{"_\r\n", false, "granted"},
		{"$8\r\n0b93a7c2\r\n", false, "granted"},
		{"$3\r\nhis\r\n", false, "denied(his)"},
		{"$0\r\n\r\n", false, "denied"},
		{"+OK\r\n", true, "granted"},
		{"$-1\r\n", true, "denied"},
		{"_\r\n", true, "denied"},
		{"-WRONGTYPE Operation against a key\r\n", false, "denied(WRONGTYPE Operation against a key)"},
		{"-LOADING Redis is loading\r\n", false, "unknown(LOADING Redis is loading)"},
		{":1\r\n", false, `unknown(SET was answered 1)`},
		{"*2\r\n:1\r\n:2\r\n", false, `unknown(SET was answered a list of 2)`},
		{"#t\r\n", false, `unknown(SET was answered "#t")`},
	} {
		conn := redisConn{socket: &handover{}}
		conn.socket.values.Reset(strings.NewReader(c.answer + ":7\r\n"))
		flight := flightOf(acquireOp("k", token, time.Second))
		refusal, err := conn.read(flight, form{plain: c.plain})
		if err != nil {
			t.Errorf("%q: %v", c.answer, err)
		}
		if got := answers(flight); got != c.want {
			t.Errorf("%q plain=%t: got %s, want %s", c.answer, c.plain, got, c.want)
		}
		if nothing := flight[0].Reply.Nothing; nothing != (refusal != nil && flight[0].Reply.Vote == quorum.Unknown) {
			t.Errorf("%q: nothing was done: %t", c.answer, nothing)
		}
		if next, err := conn.socket.values.next(); err != nil || next.n != 7 {
			t.Errorf("%q: then comes %v, %v", c.answer, next, err)
		}
	}
}

// An answer to a script that is not one for each operation, nor the one that stands for
// all of them, says nothing of any.
func TestOddAnswersToScriptsSayNothing(t *testing.T) {
	fenced := Op{Kind: OpAcquire, Key: "k", Counter: "c", Token: "t", TTL: time.Minute}
	for _, c := range []struct {
		op     Op
		n      int
		answer string
		want   quorum.Vote
	}{
		{releaseOp("k", "t"), 2, ":2\r\n", quorum.Granted},
		{releaseOp("k", "t"), 2, "*2\r\n:1\r\n:1\r\n", quorum.Granted},
		{releaseOp("k", "t"), 2, ":1\r\n", quorum.Unknown},
		{releaseOp("k", "t"), 2, ":0\r\n", quorum.Unknown},
		{extendOp("k", "t", time.Minute), 3, ":1\r\n", quorum.Unknown},
		{extendOp("k", "t", time.Minute), 1, "*2\r\n:1\r\n:1\r\n", quorum.Unknown},
		{fenced, 2, "*2\r\n:7\r\n:7\r\n", quorum.Granted},
		{fenced, 2, ":2\r\n", quorum.Unknown},
		{fenced, 1, "+OK\r\n", quorum.Unknown},
		{fenced, 1, "$-1\r\n", quorum.Unknown},
	} {
		conn := redisConn{socket: &handover{}}
		conn.socket.values.Reset(strings.NewReader(c.answer + ":7\r\n"))
		var ops []Op
		for range c.n {
			ops = append(ops, c.op)
		}
		flight := flightOf(ops...)
		if _, err := conn.read(flight, form{}); err != nil {
			t.Errorf("%q: %v", c.answer, err)
		}
		for _, op := range flight {
			if op.Reply.Vote != c.want {
				t.Errorf("%q to %v of %d: got %v, want %v", c.answer, c.op.Kind, c.n, op.Reply.Vote, c.want)
			}
		}
		if next, err := conn.socket.values.next(); err != nil || next.n != 7 {
			t.Errorf("%q: then comes %v, %v", c.answer, next, err)
		}
	}
}

// What the answers to GET and PTTL mean. What comes after them stays, whatever they
// are; and who holds the key is not told in an error.
func TestAnswersToGETAndPTTLAreRead(t *testing.T) {
	for answer, want := range map[string]string{
		"$3\r\nhis\r\n:5\r\n":             "granted(his)",
		"$-1\r\n:-2\r\n":                  "denied",
		"-WRONGTYPE Operation\r\n:5\r\n":  "denied(WRONGTYPE Operation)",
		"-NOPERM no\r\n-NOPERM no\r\n":    "unknown(NOPERM no)",
		"$3\r\nhis\r\n-NOPERM no\r\n":     "unknown(NOPERM no)",
		"$3\r\nhis\r\n+OK\r\n":            "unknown(PTTL was answered a text)",
		"$3\r\nhis\r\n*2\r\n:1\r\n:2\r\n": "unknown(PTTL was answered a list of 2)",
		"*2\r\n:1\r\n:2\r\n:5\r\n":        "unknown(GET was answered a list of 2)",
		":1\r\n:5\r\n":                    "unknown(GET was answered 1)",
	} {
		conn := redisConn{socket: &handover{}}
		conn.socket.values.Reset(strings.NewReader(answer + ":7\r\n"))
		flight := flightOf(inspectOp("k"))
		if _, err := conn.read(flight, form{}); err != nil {
			t.Errorf("%q: %v", answer, err)
		}
		if got := answers(flight); got != want {
			t.Errorf("%q: got %s, want %s", answer, got, want)
		}
		if next, err := conn.socket.values.next(); err != nil || next.n != 7 {
			t.Errorf("%q: then comes %v, %v", answer, next, err)
		}
	}
}

// What go-redis does not ask for stays for those who come after it.
func TestHandoverGivesNoMoreThanALine(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		io.Copy(there, strings.NewReader("$3\r\nhis\r\n:7\r\n"))
	}()
	h := newHandover(here)
	theirs := bufio.NewReader(h)
	for _, want := range []string{"$3\r\n", "his\r\n"} {
		if got, err := theirs.ReadString('\n'); err != nil || got != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if v, err := h.values.next(); err != nil || v.n != 7 {
		t.Errorf("then comes %v, %v", v, err)
	}
}

// BenchmarkValues is what is done with each answer of a flight.
func BenchmarkValues(b *testing.B) {
	text := []byte(strings.Repeat("$-1\r\n", 64))
	var r values
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(bytes.NewReader(text))
		for range 64 {
			if _, err := r.next(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// An answer that makes no sense is named without the token that may be in it.
func TestNonsenseShowsNoToken(t *testing.T) {
	const token = "0b93a7c2-secret"
	for _, c := range []struct {
		op     Op
		answer string
	}{
		{inspectOp("k"), "$15\r\n" + token + "\r\n+" + token + "\r\n"},
		{releaseOp("k", token), "*1\r\n-ERR " + token + "\r\n"},
		{releaseOp("k", token), "-ERR " + token + "\r\n"},
		{acquireOp("k", token, time.Second), "-ERR " + token + "\r\n"},
	} {
		conn := redisConn{socket: &handover{}}
		conn.socket.values.Reset(strings.NewReader(c.answer))
		flight := flightOf(c.op)
		if _, err := conn.read(flight, form{}); err != nil {
			t.Fatal(err)
		}
		if r := flight[0].Reply; r.Vote != quorum.Unknown || strings.Contains(r.Err.Error(), token) {
			t.Errorf("%q: got %v: %v", c.answer, r.Vote, r.Err)
		}
	}
}
