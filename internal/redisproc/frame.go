package redisproc

import (
	"bytes"
	"strconv"
	"strings"
)

// frame is the length of the RESP value or inline command that b begins with, or
// 0 if its end is not there yet. What is no RESP is taken line by line.
func frame(b []byte) int {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b[1:end])))
	if err != nil || n < 0 {
		return end
	}
	switch b[0] {
	case '$', '=', '!':
		if n > len(b)-end-len("\r\n") {
			return 0
		}
		return end + n + len("\r\n")
	case '*', '~', '>':
		return elements(b, end, n)
	case '%':
		return elements(b, end, 2*n)
	case '|': // an attribute, and the value that it belongs to
		return elements(b, end, 2*n+1)
	}
	return end
}

// elements is the length of an aggregate of n values whose first begins at from.
func elements(b []byte, from, n int) int {
	for range n {
		length := frame(b[from:])
		if length == 0 {
			return 0
		}
		from += length
	}
	return from
}

// frames cuts b into the values that are there as a whole, and what is left.
func frames(b []byte) (whole [][]byte, rest []byte) {
	for {
		n := frame(b)
		if n == 0 {
			return whole, b
		}
		whole, b = append(whole, b[:n]), b[n:]
	}
}

// command is the name in a request, in lower case.
func command(request []byte) string {
	text := string(request)
	if strings.HasPrefix(text, "*") {
		if lines := strings.SplitN(text, "\r\n", 4); len(lines) == 4 {
			text = lines[2]
		}
	}
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return strings.ToLower(name)
}
