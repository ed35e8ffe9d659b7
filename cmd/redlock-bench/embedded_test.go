package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// hang is how long anything may take before a test gives it up for hung.
const hang = 30 * time.Second

func startForTest(t *testing.T) *embedded {
	t.Helper()
	e, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// connect is one connection to a server, with go-redis on it.
func connect(t *testing.T, e *embedded) *redis.Conn {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: e.addr().String(), MaxRetries: -1})
	conn := client.Conn()
	t.Cleanup(func() {
		conn.Close()
		client.Close()
	})
	return conn
}

func fields(t *testing.T, info string) map[string]string {
	t.Helper()
	f := make(map[string]string)
	for line := range strings.SplitSeq(info, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			f[name] = value
		}
	}
	return f
}

func TestEmbeddedServerSaysWhoItIs(t *testing.T) {
	a, b := startForTest(t), startForTest(t)
	ctx := t.Context()
	conn := connect(t, a)
	text, err := conn.Info(ctx, "server", "replication", "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	got := fields(t, text)
	for name, want := range map[string]string{
		"redis_mode": "standalone", "role": "master", "maxmemory": "0", "maxmemory_policy": "noeviction",
		"tcp_port": fmt.Sprint(a.addr().Port), "master_replid": got["run_id"],
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, err := strconv.Atoi(got["uptime_in_seconds"]); err != nil || len(got["run_id"]) != 40 || got["process_id"] == "" || got["redis_version"] == "" {
		t.Errorf("INFO:\n%s", text)
	}
	if text, err := connect(t, a).Info(ctx, "SERVER").Result(); err != nil || fields(t, text)["run_id"] != got["run_id"] {
		t.Errorf("another connection gets another run_id: %v\n%s", err, text)
	} else if strings.Contains(text, "role:") {
		t.Errorf("INFO server tells more:\n%s", text)
	}
	if text, err := connect(t, b).Info(ctx).Result(); err != nil || fields(t, text)["run_id"] == got["run_id"] ||
		fields(t, text)["role"] != "master" || fields(t, text)["cluster_enabled"] != "0" {
		t.Errorf("another server: %v\n%s", err, text)
	}
}

func TestEmbeddedServerNumbersConnections(t *testing.T) {
	e := startForTest(t)
	seen := make(map[int64]bool)
	for range 10 {
		conn := connect(t, e)
		id, err := conn.ClientID(t.Context()).Result()
		if err != nil || id < 1 || seen[id] {
			t.Fatalf("id %d, %v; before it %v", id, err, seen)
		}
		seen[id] = true
		if again, err := conn.ClientID(t.Context()).Result(); err != nil || again != id {
			t.Errorf("id %d, then %d, %v", id, again, err)
		}
		info, err := conn.Do(t.Context(), "CLIENT", "INFO").Text()
		if err != nil || !strings.HasPrefix(info, fmt.Sprintf("id=%d ", id)) {
			t.Errorf("CLIENT INFO of %d: %q, %v", id, info, err)
		}
	}
}

// dialRaw is a plain connection to a server, and its number.
func dialRaw(t *testing.T, e *embedded) (conn net.Conn, id int64) {
	t.Helper()
	conn, err := net.Dial("tcp", e.addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(hang))
	fmt.Fprint(conn, "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n")
	if _, err := fmt.Fscanf(conn, ":%d\r\n", &id); err != nil {
		t.Fatal(err)
	}
	return conn, id
}

func TestEmbeddedServerKillsAnIdleConnection(t *testing.T) {
	e := startForTest(t)
	victim, id := dialRaw(t, e)
	killer := connect(t, e)
	for _, want := range []int64{1, 0} {
		if n, err := killer.Do(t.Context(), "CLIENT", "KILL", "ID", id).Int64(); err != nil || n != want {
			t.Fatalf("CLIENT KILL: %d, %v; want %d", n, err, want)
		}
	}
	n, err := victim.Read(make([]byte, 1))
	if n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the victim reads %d bytes, %v", n, err)
	}
	own, err := killer.ClientID(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := killer.Do(t.Context(), "CLIENT", "KILL", "ID", own).Int64(); err != nil || n != 0 {
		t.Errorf("it killed itself: %d, %v", n, err)
	}
}

// After CLIENT KILL has answered, nothing that the victim had sent is carried
// out any more, even if the server had already read it.
func TestNothingOfAKilledConnectionRunsAfterwards(t *testing.T) {
	const sent, wanted, tries = 400, 5, 2000
	e := startForTest(t)
	ctx := t.Context()
	killer := connect(t, e)
	cut := 0 // connections killed in the middle of their work
	for range tries {
		victim, id := dialRaw(t, e)
		fmt.Fprint(victim, strings.Repeat("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n", sent))
		if n, err := killer.Do(ctx, "CLIENT", "KILL", "ID", id).Int64(); err != nil || n != 1 {
			t.Fatalf("CLIENT KILL: %d, %v", n, err)
		}
		before, _ := killer.Get(ctx, "n").Int()
		for range 3 {
			if after, _ := killer.Get(ctx, "n").Int(); after != before {
				t.Fatalf("the count went from %d to %d", before, after)
			}
		}
		if before > 0 && before < sent {
			cut++
		}
		if cut == wanted {
			return
		}
		killer.Del(ctx, "n")
		victim.Close()
	}
	t.Fatalf("only %d of %d connections were killed in the middle of their work", cut, tries)
}

func TestConnectionsThatKillEachOtherDoNotHang(t *testing.T) {
	e := startForTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	for range 50 {
		a, b := connect(t, e), connect(t, e)
		aID, errA := a.ClientID(ctx).Result()
		bID, errB := b.ClientID(ctx).Result()
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			a.Do(ctx, "CLIENT", "KILL", "ID", bID)
			close(done)
		}()
		b.Do(ctx, "CLIENT", "KILL", "ID", aID)
		<-done
		if ctx.Err() != nil {
			t.Fatal("they hang")
		}
	}
}

func TestEmbeddedKeysExpire(t *testing.T) {
	e := startForTest(t)
	conn := connect(t, e)
	ctx := t.Context()
	if err := conn.Set(ctx, "short", "v", 30*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Set(ctx, "long", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(hang); ; {
		n, err := conn.Exists(ctx, "short").Result()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the key is still there: %v", err)
		}
		if n == 0 {
			break
		}
	}
	if ttl, err := conn.PTTL(ctx, "long").Result(); err != nil || ttl >= time.Hour || ttl < time.Hour-hang {
		t.Errorf("the long key has %v left, %v", ttl, err)
	}
}

func TestClosedEmbeddedServerIsGone(t *testing.T) {
	e, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, e)
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()).Err(); err == nil {
		t.Error("its connection still answers")
	}
	if c, err := net.Dial("tcp", e.addr().String()); err == nil {
		c.Close()
		t.Error("it still accepts connections")
	}
}
