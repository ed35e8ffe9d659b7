package redisproc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTornTailLosesWhatWasWrittenLast(t *testing.T) {
	for name, rewrites := range map[string]int{"never rewritten": 0, "rewritten": 1} {
		t.Run(name, func(t *testing.T) {
			// With everysec a write may be put off while a sync goes on, so that more
			// than the tail would be lost.
			s := start(t, Options{Args: []string{"--appendonly", "yes", "--appendfsync", "no"}})
			c := dial(t, "tcp", s.Addr())
			for range rewrites {
				c.ask("SET", "old", "v")
				if got := c.ask("BGREWRITEAOF"); !strings.HasPrefix(got, "+") {
					t.Fatalf("BGREWRITEAOF: %q", got)
				}
				for busy := true; busy; {
					c.send("INFO", "persistence")
					info := c.bulk()
					busy = strings.Contains(info, "aof_rewrite_in_progress:1") || strings.Contains(info, "aof_rewrite_scheduled:1")
				}
			}
			for _, key := range []string{"a", "b", "c"} {
				if got := c.ask("SET", key, "v"); got != "+OK" {
					t.Fatalf("SET: %q", got)
				}
			}
			if err := s.Tear(1); err == nil {
				t.Error("it tore the file of a server that runs")
			}
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.Tear(1); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(patience(t), Keep); err != nil {
				t.Fatal(err)
			}
			if log := s.Log(); !strings.Contains(log, "runcat") {
				t.Errorf("it has not noticed:\n%s", log)
			}
			c = dial(t, "tcp", s.Addr())
			is(t, c, "a", "v")
			is(t, c, "b", "v")
			if got := c.ask("GET", "c"); got != "$-1" {
				t.Errorf("the last key is there: %q", got)
			}
		})
	}
}

func TestTearTakesOnlyWhatIsThere(t *testing.T) {
	for name, o := range map[string]Options{"no file": {}, "a short one": {Args: []string{"--appendonly", "yes"}}} {
		s := start(t, o)
		dial(t, "tcp", s.Addr()).ask("SET", "k", "v")
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{-1, 1 << 20} {
			if err := s.Tear(n); err == nil {
				t.Errorf("%s: it tore %d bytes off", name, n)
			}
		}
	}
}

func TestNewestLogIsThatOfTheLastRewrite(t *testing.T) {
	for want, names := range map[string][]string{
		"":                            {"dump.rdb"},
		"appendonly.aof":              {"appendonly.aof", "dump.rdb"},
		"logs/appendonly.10.incr.aof": {"logs/appendonly.9.incr.aof", "logs/appendonly.10.incr.aof", "logs/appendonly.11.base.aof", "appendonly.aof"},
	} {
		dir := t.TempDir()
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := newestLog(dir)
		if (err == nil) != (want != "") || err == nil && got != filepath.Join(dir, want) {
			t.Errorf("of %q: %q, %v", names, got, err)
		}
	}
}
