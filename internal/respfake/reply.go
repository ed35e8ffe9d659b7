package respfake

import (
	"fmt"
	"strconv"
	"strings"
)

// What a command answers is a plain value: string (bulk), int, int64, nil, []any,
// error, or one of these.
type (
	status   string // a simple string: +OK
	verbatim string // text: a verbatim string in RESP3
	mapping  []any  // keys and values in turn: a map in RESP3
)

// A failure is an error reply, in Redis' words.
type failure string

func (f failure) Error() string { return string(f) }

func failf(format string, args ...any) failure { return failure(fmt.Sprintf(format, args...)) }

const statusOK = status("OK")

// ErrWrongType is Redis' error for a command on a key that holds another type.
var ErrWrongType error = failure("WRONGTYPE Operation against a key holding the wrong kind of value")

var (
	errSyntax     error = failure("ERR syntax error")
	errNotInteger error = failure("ERR value is not an integer or out of range")
)

// appendReply adds the wire form of an answer in this protocol version.
func appendReply(b []byte, answer any, proto int) []byte {
	switch v := answer.(type) {
	case nil:
		if proto == 3 {
			return append(b, "_\r\n"...)
		}
		return append(b, "$-1\r\n"...)
	case status:
		return append(append(append(b, '+'), v...), "\r\n"...)
	case error:
		return append(append(append(b, '-'), oneLine.Replace(v.Error())...), "\r\n"...)
	case bool:
		// What Lua's booleans become.
		if v {
			return appendReply(b, 1, proto)
		}
		return appendReply(b, nil, proto)
	case int:
		return appendHead(b, ':', int64(v))
	case int64:
		return appendHead(b, ':', v)
	case string:
		b = appendHead(b, '$', int64(len(v)))
		return append(append(b, v...), "\r\n"...)
	case verbatim:
		if proto != 3 {
			return appendReply(b, string(v), proto)
		}
		b = appendHead(b, '=', int64(len(v)+4))
		return append(append(append(b, "txt:"...), v...), "\r\n"...)
	case []any:
		return appendEach(appendHead(b, '*', int64(len(v))), v, proto)
	case mapping:
		if proto != 3 {
			return appendReply(b, []any(v), proto)
		}
		return appendEach(appendHead(b, '%', int64(len(v)/2)), v, proto)
	}
	panic(fmt.Sprintf("respfake: a script or command answered with a %T", answer))
}

func appendHead(b []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, kind), n, 10), "\r\n"...)
}

func appendEach(b []byte, vs []any, proto int) []byte {
	for _, v := range vs {
		b = appendReply(b, v, proto)
	}
	return b
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// parseInt reads a number as strictly as Redis: no sign +, no leading zeros.
func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, errNotInteger
	}
	return n, nil
}
