package redlock

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// The part of the Redis serialization protocol, versions 2 and 3, that flights need:
// https://redis.io/docs/latest/develop/reference/protocol-spec/.

// appendWords appends the head of a command of n words to a request.
func appendWords(b []byte, n int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, "\r\n"...)
}

// appendWord appends a word of a command.
func appendWord(b []byte, word string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(word)), 10)
	b = append(b, "\r\n"...)
	b = append(b, word...)
	return append(b, "\r\n"...)
}

// appendNumber appends a number as a word of a command.
func appendNumber(b []byte, n int64) []byte {
	var digits [20]byte
	return appendWord(b, string(strconv.AppendInt(digits[:0], n, 10)))
}

// value is what a node has answered, or the head of a list of values.
type value struct {
	kind valueKind
	n    int64  // the number, or how many there are in the list
	text []byte // good until more is read
}

type valueKind uint8

const (
	valueNull valueKind = iota
	valueText
	valueNumber
	valueError
	valueList  // n values follow
	valuePush  // n values follow; next passes it over
	valueOther // as it stands on the wire; of a kind that no lock asks for
)

// String says what it is. It does not repeat what may be a token.
func (v value) String() string {
	switch v.kind {
	case valueNull:
		return "nothing"
	case valueText:
		return "a text"
	case valueError:
		return "an error"
	case valueNumber:
		return strconv.FormatInt(v.n, 10)
	case valueList:
		return fmt.Sprintf("a list of %d", v.n)
	}
	return strconv.Quote(string(v.text))
}

// errorReply is an error that a node has answered.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError makes it a [redis.Error].
func (errorReply) RedisError() {}

var errNotRESP = errors.New("what came is not what a Redis server says")

// Bounds of what is believed of an answer: the longest text that Redis takes, more than
// it says in a line, and more than a flight carries.
const (
	longestText = 512 << 20
	longestLine = 1 << 16
	longestList = 1 << 16
)

// values reads what a node says.
type values struct{ bufio.Reader }

// next reads one value. Of a list it is the head. A push is no answer, and passed over:
// somebody's OnConnect has asked for it.
func (r *values) next() (value, error) {
	for {
		v, err := r.one()
		if err != nil || v.kind != valuePush {
			return v, err
		}
		if err := r.skip(v.n); err != nil {
			return value{}, err
		}
	}
}

// one reads one value, which may be the head of a push.
func (r *values) one() (value, error) {
	line, err := r.line()
	if err != nil {
		return value{}, err
	}
	switch line[0] {
	case '+':
		return value{kind: valueText, text: line[1:]}, nil
	case '-':
		return value{kind: valueError, text: line[1:]}, nil
	case ':':
		n, err := strconv.ParseInt(string(line[1:]), 10, 64)
		if err != nil {
			return value{}, errNotRESP
		}
		return value{kind: valueNumber, n: n}, nil
	case '_':
		return value{}, nil
	case '#', ',', '(':
		return value{kind: valueOther, text: line}, nil
	case '$', '=', '*', '>':
		kind := line[0] // reading on takes the line away
		n, err := strconv.ParseInt(string(line[1:]), 10, 32)
		isText := kind == '$' || kind == '='
		switch {
		case err != nil || n < -1 || n > longestText || !isText && n > longestList:
			return value{}, errNotRESP
		case n == -1:
			return value{}, nil
		case kind == '*':
			return value{kind: valueList, n: n}, nil
		case kind == '>':
			return value{kind: valuePush, n: n}, nil
		}
		text, err := r.text(int(n))
		if kind == '=' && err == nil { // what INFO is in version 3: txt:…
			if len(text) < 4 || text[3] != ':' {
				return value{}, errNotRESP
			}
			text = text[4:]
		}
		return value{kind: valueText, text: text}, err
	}
	return value{}, errNotRESP
}

// skip reads n values and whatever is in them, without recursion, however deep it is.
func (r *values) skip(n int64) error {
	for ; n > 0; n-- {
		v, err := r.one()
		switch {
		case err != nil:
			return err
		case v.kind == valueList:
			n += v.n
		case v.kind == valuePush:
			n += 1 + v.n
		}
	}
	return nil
}

// rest reads what is in v, which next has returned, if it is a list.
func (r *values) rest(v value) error {
	if v.kind != valueList {
		return nil
	}
	return r.skip(v.n)
}

// line reads a line that is not empty, without its end.
func (r *values) line() ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		head := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(head) < longestLine {
			line, err = r.ReadSlice('\n')
			head = append(head, line...)
		}
		line = head
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errNotRESP
	}
	if err != nil {
		return nil, err
	}
	line, whole := bytes.CutSuffix(line, []byte("\r\n"))
	if !whole || len(line) == 0 {
		return nil, errNotRESP
	}
	return line, nil
}

// text reads a text of n bytes and the end of its line.
func (r *values) text(n int) ([]byte, error) {
	var text []byte
	var err error
	if n += 2; n <= r.Size() {
		if text, err = r.Peek(n); err == nil {
			r.Discard(n)
		}
	} else { // room is made for it as it comes, whatever n says
		var all bytes.Buffer
		_, err = io.CopyN(&all, r, int64(n))
		text = all.Bytes()
	}
	if err != nil {
		return nil, err
	}
	text, whole := bytes.CutSuffix(text, []byte("\r\n"))
	if !whole {
		return nil, errNotRESP
	}
	return text, nil
}

// handover is a socket whose answers are read by go-redis first, and by flights
// later: it gives go-redis no more than a line at a time, so that nothing that
// comes after what go-redis reads is left in go-redis' hands. And it measures: the first
// questions are short ones.
type handover struct {
	net.Conn
	values    values
	asked     time.Time
	roundTrip time.Duration // the shortest of those that go-redis waited for
}

func newHandover(socket net.Conn) *handover {
	h := &handover{Conn: socket}
	h.values.Reset(socket)
	return h
}

// Write implements io.Writer.
func (h *handover) Write(b []byte) (int, error) {
	h.asked = time.Now()
	return h.Conn.Write(b)
}

// Read implements io.Reader.
func (h *handover) Read(b []byte) (int, error) {
	if _, err := h.values.Peek(1); err != nil {
		return 0, err
	}
	if took := time.Since(h.asked); !h.asked.IsZero() && (h.roundTrip == 0 || took < h.roundTrip) {
		h.roundTrip = took
	}
	h.asked = time.Time{}
	there, _ := h.values.Peek(min(len(b), h.values.Buffered()))
	if i := bytes.IndexByte(there, '\n'); i >= 0 {
		there = there[:i+1]
	}
	n := copy(b, there)
	h.values.Discard(n)
	return n, nil
}
