package respfake

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func del(x *call) any { return x.tx().Del(x.args...) }

// exists counts a key as often as it is named.
func exists(x *call) any {
	n := 0
	for _, key := range x.args {
		if x.tx().find(key) != nil {
			n++
		}
	}
	return n
}

func typeCommand(x *call) any { return status(x.tx().Type(x.args[0])) }

func pttl(x *call) any { return x.tx().PTTL(x.args[0]) }

func ttl(x *call) any {
	ms := x.tx().PTTL(x.args[0])
	if ms < 0 {
		return ms
	}
	return (ms + 500) / 1000
}

func pexpire(x *call) any {
	if len(x.args) > 2 && !x.srv.since(7, 0) {
		return arityError(x.name)
	}
	var nx, xx, gt, lt bool
	for _, option := range x.args[2:] {
		switch strings.ToUpper(option) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "GT":
			gt = true
		case "LT":
			lt = true
		default:
			return failf("ERR Unsupported option %s", option)
		}
	}
	if nx && (xx || gt || lt) {
		return failure("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if gt && lt {
		return failure("ERR GT and LT options at the same time are not compatible")
	}
	ms, err := parseInt(x.args[1])
	if err != nil {
		return err
	}
	if ms > math.MaxInt64-x.now.UnixMilli() {
		return expireError(x)
	}
	key := x.args[0]
	// A key without expiry counts as one that never ends: nothing is greater.
	switch left := x.tx().PTTL(key); {
	case left == -2,
		nx && left != -1,
		xx && left == -1,
		gt && (left == -1 || ms <= left),
		lt && left != -1 && ms >= left:
		return 0
	}
	x.tx().PExpire(key, ms)
	return 1
}

func keysCommand(x *call) any {
	found := []any{}
	for _, name := range x.tx().Keys() {
		if glob(x.args[0], name) {
			found = append(found, name)
		}
	}
	return found
}

// scan answers with everything at once, which Redis allows itself too.
func scan(x *call) any {
	if _, err := strconv.ParseUint(x.args[0], 10, 64); err != nil {
		return failure("ERR invalid cursor")
	}
	pattern, kind := "*", ""
	for args := x.args[1:]; len(args) > 0; args = args[2:] {
		option := strings.ToUpper(args[0])
		switch {
		case len(args) < 2:
			return errSyntax
		case option == "MATCH":
			pattern = args[1]
		case option == "TYPE":
			kind = args[1]
		case option == "COUNT":
			n, err := parseInt(args[1])
			if err != nil {
				return err
			}
			if n < 1 {
				return errSyntax
			}
		default:
			return errSyntax
		}
	}
	found := []any{}
	for _, name := range x.tx().Keys() {
		if glob(pattern, name) && (kind == "" || strings.EqualFold(kind, x.tx().Type(name))) {
			found = append(found, name)
		}
	}
	return []any{"0", found}
}

func dbsize(x *call) any { return len(x.tx().Keys()) }

func flushAll(x *call) any {
	if len(x.args) > 1 || len(x.args) == 1 && !syncOrAsync(x.args[0]) {
		return errSyntax
	}
	x.srv.flush()
	return statusOK
}

func syncOrAsync(word string) bool {
	return strings.EqualFold(word, "sync") || strings.EqualFold(word, "async")
}

func timeCommand(x *call) any {
	us := x.now.UnixMicro()
	second := int64(time.Second / time.Microsecond)
	return []any{strconv.FormatInt(us/second, 10), strconv.FormatInt(us%second, 10)}
}
