package redlock

import (
	_ "embed" // for the scripts

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed stamp.lua
	stampSource string
	//go:embed extend.lua
	extendSource string
	//go:embed release.lua
	releaseSource string

	scripts = [...]script{
		OpAcquire: newScript(acquireSource),
		OpStamp:   newScript(stampSource),
		OpExtend:  newScript(extendSource),
		OpRelease: newScript(releaseSource),
	}
)

// script is a Lua script and the sum that names it on a node.
type script struct{ source, sum string }

func newScript(source string) script {
	return script{source, redis.NewScript(source).Hash()}
}

// appendCall appends the call of the script for ops, which are of one kind, to a
// request. whole: it brings the script along.
func appendCall(b []byte, ops []*Op, whole bool) []byte {
	kind, n := ops[0].Kind, len(ops)
	fenced := ops[0].Counter != "" && kind != OpRelease
	keys, args := n, n
	switch kind {
	case OpAcquire:
		args = 3 * n
	case OpStamp, OpExtend:
		args = 2 * n
	}
	if fenced {
		keys, args = 2*n, args+1
	}
	b = appendWords(b, 3+keys+args)
	if whole {
		b = appendWord(appendWord(b, "eval"), scripts[kind].source)
	} else {
		b = appendWord(appendWord(b, "evalsha"), scripts[kind].sum)
	}
	b = appendNumber(b, int64(keys))
	for _, op := range ops {
		b = appendWord(b, op.Key)
		if kind == OpAcquire || kind == OpStamp {
			b = appendWord(b, op.Counter)
		}
	}
	if kind == OpExtend && fenced {
		for _, op := range ops {
			b = appendWord(b, op.Counter)
		}
	}
	for _, op := range ops {
		b = appendWord(b, string(op.Token))
		if kind == OpAcquire {
			b = appendNumber(b, ceilMillis(op.TTL))
		}
		if kind == OpAcquire || kind == OpStamp {
			b = appendNumber(b, int64(op.Fence))
		}
	}
	if kind == OpExtend {
		for _, op := range ops {
			b = appendNumber(b, ceilMillis(op.TTL))
		}
	}
	if fenced {
		b = appendNumber(b, ceilMillis(ops[0].CounterTTL))
	}
	return b
}
