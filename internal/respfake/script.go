package respfake

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// Script is what a Lua script does, in Go. It may return int, int64, string, bool
// (as Lua's: true is 1, false is nil), nil, []any of these, or an error, whose
// text is the reply. It must not call the server's methods.
type Script func(tx *Tx, keys, argv []string) any

// Script registers what the script with this source does. A client still has to
// load it, with EVAL or SCRIPT LOAD; until then EVALSHA answers NOSCRIPT. A script that
// was not registered can be loaded but not run.
func (s *Server) Script(lua string, does Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[digest(lua)] = does
}

func digest(lua string) string {
	sum := sha1.Sum([]byte(lua))
	return hex.EncodeToString(sum[:])
}

var errNoScript = failure("NOSCRIPT No matching script. Please use EVAL.")

func eval(x *call) any {
	return x.runScript(digest(x.args[0]), true)
}

func evalSHA(x *call) any {
	return x.runScript(strings.ToLower(x.args[0]), false)
}

func (x *call) runScript(sha string, load bool) any {
	n, err := parseInt(x.args[1])
	switch {
	case err != nil:
		return err
	case n > int64(len(x.args)-2):
		return failure("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return failure("ERR Number of keys can't be negative")
	case !load && !x.srv.loaded[sha]:
		return errNoScript
	}
	does := x.srv.scripts[sha]
	if does == nil {
		return failf("ERR respfake runs no Lua, and no function is registered for script %s", sha)
	}
	x.srv.loaded[sha] = true
	return does(x.tx(), x.args[2:2+n], x.args[2+n:])
}

func scriptLoad(x *call) any {
	sha := digest(x.args[0])
	x.srv.loaded[sha] = true
	return sha
}

func scriptExists(x *call) any {
	out := make([]any, len(x.args))
	for i, sha := range x.args {
		out[i] = 0
		if x.srv.loaded[strings.ToLower(sha)] {
			out[i] = 1
		}
	}
	return out
}

func scriptFlush(x *call) any {
	if len(x.args) > 1 || len(x.args) == 1 && !syncOrAsync(x.args[0]) {
		return failure("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	clear(x.srv.loaded)
	return statusOK
}
