package redlock

import (
	"context"
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

	scripts = map[OpKind]script{
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

// script is the call of the script for ops, which are of one kind.
func (c *redisConn) script(ctx context.Context, ops []*Op) *redis.Cmd {
	script := scripts[ops[0].Kind]
	args := make([]any, 0, 4+6*len(ops))
	// The first acquire brings its script along, known to the node or not: one
	// that had to be sent again would come after what stands behind it.
	acquire := ops[0].Kind == OpAcquire
	if c.form.whole || acquire && !c.fenced {
		args = append(args, "eval", script.source)
	} else {
		args = append(args, "evalsha", script.sum)
	}
	c.fenced = c.fenced || acquire
	args = append(args, 0)
	for _, op := range ops {
		args = append(args, &op.Key)
		if op.Kind == OpAcquire || op.Kind == OpStamp {
			args = append(args, &op.Counter)
		}
	}
	fenced := ops[0].Kind == OpExtend && ops[0].Counter != ""
	if fenced {
		for _, op := range ops {
			args = append(args, &op.Counter)
		}
	}
	args[2] = len(args) - 3
	for _, op := range ops {
		args = append(args, (*string)(&op.Token))
		switch op.Kind {
		case OpAcquire:
			args = append(args, ceilMillis(op.TTL), int64(op.Fence), ceilMillis(op.CounterTTL))
		case OpStamp:
			args = append(args, int64(op.Fence), ceilMillis(op.CounterTTL))
		}
	}
	if ops[0].Kind == OpExtend {
		for _, op := range ops {
			args = append(args, ceilMillis(op.TTL))
		}
	}
	if fenced {
		args = append(args, ceilMillis(ops[0].CounterTTL))
	}
	return redis.NewCmd(ctx, args...)
}

// refused reports whether a script that answered err was refused as a whole. One
// that had begun may have done its work for some of its keys.
func refused(err error) bool {
	for _, prefix := range []string{
		"NOSCRIPT", "NOAUTH", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "CROSSSLOT", "MOVED", // before it began
		"READONLY", "MISCONF", "NOREPLICAS", "OOM", // at its first write
	} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
