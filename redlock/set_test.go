package redlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// What a SET was answered is read as it stands on the wire; a part of an answer is
// none.
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
		{"$3\r\nhis\r\n", false, "denied his"},
		{"$0\r\n\r\n", false, "denied "},
		{"$5\r\na\r\nbc\r\n", false, "denied a\r\nbc"},
		{"+OK\r\n", true, "granted"},
		{"$-1\r\n", true, "denied "},
		{"_\r\n", true, "denied "},
		{"-WRONGTYPE Operation against a key\r\n", false, "denied  WRONGTYPE Operation against a key"},
		{"-LOADING Redis is loading\r\n", false, "unknown nothing LOADING Redis is loading"},
		{"-ERR syntax error\r\n", false, "unknown nothing ERR syntax error"},
		{"", false, "unknown lost"},
		{"$-1", false, "unknown lost"},
		{"\r\n", false, "unknown lost"},
		{"$8\r\n0b93a7", false, "unknown lost"},
		{"$8\r\n0b93\r\n", false, "unknown lost"},
		{"$8\r\n0b93a7c2x\r\n", false, "unknown lost"},
		{":1\r\n", false, `unknown SET was answered ":1"`},
		{"*0\r\n", false, `unknown SET was answered "*0"`},
	} {
		var conn redisConn
		conn.form.plain = c.plain
		op := acquireOp("k", token, time.Second)
		s := conn.set(0, &op)
		s.cmd.SetErr(errors.New("lost"))
		s.Write([]byte(c.answer))
		s.read()
		r := s.reply(token, c.plain)
		got := r.Vote.String()
		if r.Vote == quorum.Denied {
			got += " " + string(r.Holder)
		}
		if r.Nothing {
			got += " nothing"
		}
		if r.Err != nil {
			got += " " + r.Err.Error()
		}
		if got != c.want {
			t.Errorf("%q plain=%t: got %q, want %q", c.answer, c.plain, got, c.want)
		}
		if again := conn.set(0, &op); len(again.answer) != 0 {
			t.Errorf("%q: it is still there when the command is used again", c.answer)
		}
	}
}

// Something large under a lock's name is not kept for the life of the connection.
func TestNoLargeAnswerIsKept(t *testing.T) {
	var conn redisConn
	op := acquireOp("k", "t", time.Second)
	fmt.Fprintf(conn.set(0, &op), "$1000000\r\n%s\r\n", strings.Repeat("x", 1e6))
	if s := conn.set(0, &op); cap(s.answer) > maxAnswer {
		t.Errorf("%d bytes are kept", cap(s.answer))
	}
}

// BenchmarkSet is what is done for each SET besides what go-redis does.
func BenchmarkSet(b *testing.B) {
	conn := redisConn{}
	op := acquireOp("k", "t", time.Second)
	b.ReportAllocs()
	for b.Loop() {
		s := conn.set(0, &op)
		s.Write([]byte("$-1\r\n"))
		s.read()
		op.Reply = s.reply(op.Token, false)
	}
}
