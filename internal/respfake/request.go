package respfake

import "bytes"

const (
	maxArgs = 1024 * 1024
	maxBulk = 512 * 1024 * 1024
)

// parseRequest reads one request from the front of b. It returns how many bytes
// that took, 0 when b does not hold a whole one yet. An empty request (*0) has no
// args and is to be skipped. Inline commands are not understood.
func parseRequest(b []byte) (args []string, n int, err error) {
	count, n, ok := parseLength(b, '*')
	switch {
	case n == 0:
		return nil, 0, nil
	case b[0] != '*':
		return nil, 0, failf("ERR Protocol error: expected '*', got '%c'", b[0])
	case !ok || count > maxArgs:
		return nil, 0, failf("ERR Protocol error: invalid multibulk length")
	}
	for range count {
		size, head, ok := parseLength(b[n:], '$')
		switch {
		case head == 0:
			return nil, 0, nil
		case b[n] != '$':
			return nil, 0, failf("ERR Protocol error: expected '$', got '%c'", b[n])
		case !ok || size < 0 || size > maxBulk:
			return nil, 0, failf("ERR Protocol error: invalid bulk length")
		}
		n += head
		if len(b)-n < size+2 {
			return nil, 0, nil
		}
		args = append(args, string(b[n:n+size]))
		n += size + 2
	}
	return args, n, nil
}

// parseLength reads a line such as "*3\r\n". A wrong first byte is the caller's to
// report; n is 0 while it is not known and the line is not complete.
func parseLength(b []byte, kind byte) (length, n int, ok bool) {
	if len(b) > 0 && b[0] != kind {
		return 0, 1, false
	}
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, 0, false
	}
	v, err := parseInt(string(b[1:end]))
	if err != nil || v < -1 || v > maxBulk {
		return 0, end + 2, false
	}
	return int(v), end + 2, true
}
