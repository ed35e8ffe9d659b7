package respfake

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestScriptsRunAsRegistered(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		const release = "-- deletes KEYS[1] if it is ARGV[1]\nreturn 0"
		s.Script(release, func(tx *Tx, keys, argv []string) any {
			text, found, err := tx.Get(keys[0])
			if err != nil {
				return err
			}
			if !found || text != argv[0] {
				return 0
			}
			return tx.Del(keys[0])
		})
		w := connect(t, s)
		sha := digest(release)
		w.want(t, "SET k token", "+OK")
		w.want(t, "EVALSHA "+sha+" 1 k token", "-NOSCRIPT No matching script. Please use EVAL.")
		if got := w.askArgs(t, "SCRIPT", "LOAD", release); got != `$"`+sha+`"` {
			t.Fatalf("SCRIPT LOAD: %s", got)
		}
		w.want(t, "EVALSHA "+sha+" 1 k other", ":0")
		w.want(t, "EVALSHA "+sha+" 1 k token", ":1")
		w.want(t, "LPUSH k x", ":1")
		w.want(t, "EVALSHA "+sha+" 1 k token", "-"+ErrWrongType.Error())
		w.want(t, "SCRIPT FLUSH", "+OK")
		w.want(t, "EVALSHA "+sha+" 1 k token", "-NOSCRIPT No matching script. Please use EVAL.")
		if got := w.askArgs(t, "EVAL", release, "1", "none", "token"); got != ":0" {
			t.Errorf("EVAL: %s", got)
		}
		w.want(t, "EVALSHA "+sha+" 1 none token", ":0")
	})
}

func TestUnregisteredScriptIsALoudError(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		for _, line := range []string{"EVAL nobody_knows 0", "EVALSHA " + digest("x") + " 0"} {
			w.ask(t, "SCRIPT LOAD x")
			if got := w.ask(t, line); !strings.HasPrefix(got, "-ERR respfake") {
				t.Errorf("%s: %s", line, got)
			}
		}
	})
}

func TestScriptReturnsEveryKindOfReply(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		s.Script("kinds", func(*Tx, []string, []string) any {
			return []any{1, int64(2), "three", nil, true, false, []any{"4", errors.New("FIVE is\r\nan error")}}
		})
		w := connect(t, s)
		w.want(t, "EVAL kinds 0", `*[:1 :2 $"three" $-1 :1 $-1 *[$"4" -FIVE is  an error]]`)
		w.ask(t, "HELLO 3")
		w.want(t, "EVAL kinds 0", `*[:1 :2 $"three" _ :1 _ *[$"4" -FIVE is  an error]]`)
	})
}

func TestScriptRunsAtOneInstant(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		s.Script("hold", func(tx *Tx, keys, _ []string) any {
			tx.Set(keys[0], "x", SetOptions{TTL: 50 * time.Millisecond})
			return int(tx.PTTL(keys[0]))
		})
		w := connect(t, s)
		w.want(t, "SELECT 2", "+OK")
		w.want(t, "EVAL hold 1 k", ":50")
		if has(s, "k") {
			t.Error("it wrote to database 0")
		}
	})
}
