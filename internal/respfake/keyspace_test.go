package respfake

import (
	"slices"
	"testing"
	"time"
)

func TestKeyLivesUntilTheClockIsPastItsExpiry(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		time.Sleep(700 * time.Microsecond) // expiry counts whole milliseconds
		w.want(t, "SET k v PX 1000", "+OK")
		time.Sleep(1000 * time.Millisecond)
		w.want(t, "PTTL k", ":0")
		w.want(t, "SET k v NX", "$-1")
		time.Sleep(299 * time.Microsecond)
		w.want(t, "GET k", `$"v"`)
		time.Sleep(time.Microsecond)
		w.want(t, "GET k", "$-1")
		w.want(t, "DBSIZE", ":0")
		w.want(t, "SET k v NX EX 2", "+OK")
		time.Sleep(600 * time.Millisecond)
		w.want(t, "TTL k", ":1")
		w.want(t, "PTTL k", ":1400")
	})
}

func TestTxSeesWhatCommandsSee(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		s.Do(3, func(tx *Tx) {
			if !tx.Set("a", "1", SetOptions{NX: true, TTL: time.Second}) || tx.Set("a", "2", SetOptions{NX: true}) || tx.Set("x", "2", SetOptions{XX: true}) {
				t.Error("NX or XX is not heeded")
			}
			tx.Set("a", "3", SetOptions{KeepTTL: true})
			if got := tx.PTTL("a"); got != 1000 {
				t.Errorf("PTTL %d", got)
			}
			if _, err := tx.Push("a", "x"); err != ErrWrongType {
				t.Errorf("Push: %v", err)
			}
			if n, err := tx.Push("l", "x", "y"); n != 2 || err != nil {
				t.Errorf("Push: %d, %v", n, err)
			}
			if _, _, err := tx.Get("l"); err != ErrWrongType {
				t.Errorf("Get: %v", err)
			}
			if got := tx.MGet("a", "l", "none"); !slices.Equal(got, []any{"3", nil, nil}) {
				t.Errorf("MGet: %v", got)
			}
			if got := []string{tx.Type("a"), tx.Type("l"), tx.Type("none")}; !slices.Equal(got, []string{"string", "list", "none"}) {
				t.Errorf("types %v", got)
			}
			if tx.PExpire("none", 5) || !tx.PExpire("l", 5) || !tx.PExpire("a", 2000) {
				t.Error("PExpire")
			}
		})
		w := connect(t, s)
		w.want(t, "DBSIZE", ":0")
		w.want(t, "SELECT 3", "+OK")
		w.want(t, "PTTL a", ":2000")
		time.Sleep(time.Second)
		s.Do(3, func(tx *Tx) {
			if got := tx.Keys(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("keys %v", got)
			}
			if !tx.PExpire("a", 0) || tx.Del("a") != 0 {
				t.Error("PEXPIRE 0 has left the key")
			}
		})
		if len(s.Log()) != 3 {
			t.Errorf("Do is in the log: %v", s.Log())
		}
	})
}
