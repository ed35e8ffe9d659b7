package respfake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// clientOf makes a client with one connection and no retries. In a bubble the
// address has to be an IP literal and maintenance notifications off: the one starts a
// look-up outside, the other a goroutine that outlives the client.
func clientOf(s *Server, change func(*redis.Options)) *redis.Client {
	opt := &redis.Options{
		Addr:                     "127.0.0.1:6379",
		Dialer:                   s.Dialer(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		PoolSize:                 1,
		PipelinePoolSize:         -1,
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
	}
	if change != nil {
		change(opt)
	}
	return redis.NewClient(opt)
}

func TestGoRedisConnects(t *testing.T) {
	users := map[string]User{"default": {Password: "sec"}, "bob": {Password: "pw", Deny: []string{"info"}}}
	for name, c := range map[string]struct {
		server Options
		client func(*redis.Options)
		proto  int
	}{
		"RESP3":              {Options{}, nil, 3},
		"RESP2":              {Options{}, func(o *redis.Options) { o.Protocol = 2 }, 2},
		"no HELLO":           {Options{NoHello: true}, nil, 2},
		"no HELLO, password": {Options{NoHello: true, Users: users}, func(o *redis.Options) { o.Password = "sec" }, 2},
		"password":           {Options{Users: users}, func(o *redis.Options) { o.Password = "sec" }, 3},
		"user":               {Options{Users: users}, func(o *redis.Options) { o.Username, o.Password = "bob", "pw" }, 3},
		"name, database":     {Options{}, func(o *redis.Options) { o.ClientName, o.DB = "me", 5 }, 3},
		"Redis 8":            {Options{Version: "8.0.2"}, nil, 3},
		"cluster":            {Options{Cluster: true}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, c.server, func(t *testing.T, s *Server) {
				rdb := clientOf(s, c.client)
				defer rdb.Close()
				ctx := t.Context()
				for _, want := range []string{"", "token"} {
					got, err := rdb.SetArgs(ctx, "k", "token", redis.SetArgs{Mode: "NX", Get: true, TTL: time.Second}).Result()
					if got != want || (err == redis.Nil) != (want == "") {
						t.Fatalf("SET: %q, %v", got, err)
					}
				}
				if ttl, err := rdb.PTTL(ctx, "k").Result(); ttl != time.Second || err != nil {
					t.Errorf("PTTL: %v, %v", ttl, err)
				}
				s.mu.Lock()
				for _, ses := range s.sessions {
					if ses.proto != c.proto {
						t.Errorf("protocol %d", ses.proto)
					}
				}
				s.mu.Unlock()
				if s.Accepted() != 1 {
					t.Errorf("%d connections for one client", s.Accepted())
				}
			})
		})
	}
}

func TestGoRedisErrors(t *testing.T) {
	bubble(t, Options{Cluster: true, Users: map[string]User{"default": {Password: "sec"}, "bob": {Password: "pw", Deny: []string{"info", "client|kill"}}}}, func(t *testing.T, s *Server) {
		ctx := t.Context()
		bob := clientOf(s, func(o *redis.Options) { o.Username, o.Password = "bob", "pw" })
		defer bob.Close()
		if err := bob.Info(ctx).Err(); !redis.IsPermissionError(err) {
			t.Errorf("INFO: %v", err)
		}
		if err := bob.ClientKillByFilter(ctx, "ID", "1").Err(); !redis.IsPermissionError(err) {
			t.Errorf("CLIENT KILL: %v", err)
		}
		if err := bob.MGet(ctx, "a", "b").Err(); err == nil || err.Error() != errCrossSlot.Error() {
			t.Errorf("MGET: %v", err)
		}
		wrong := clientOf(s, func(o *redis.Options) { o.Password = "wrong" })
		defer wrong.Close()
		if err := wrong.Ping(ctx).Err(); !redis.IsAuthError(err) {
			t.Errorf("wrong password: %v", err)
		}
	})
}

func TestGoRedisPipelinesAndScripts(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		const lua = "return {KEYS[1], ARGV[1]}"
		s.Script(lua, func(_ *Tx, keys, argv []string) any { return []any{keys[0], argv[0]} })
		rdb := clientOf(s, nil)
		defer rdb.Close()
		ctx := t.Context()
		script := redis.NewScript(lua)
		pipe := rdb.Pipeline()
		set, call := pipe.Set(ctx, "a", "1", 0), script.EvalSha(ctx, pipe, []string{"k"}, "v")
		if _, err := pipe.Exec(ctx); !redis.HasErrorPrefix(err, "NOSCRIPT") || set.Err() != nil {
			t.Errorf("EVALSHA: %v, SET: %v", call.Err(), set.Err())
		}
		got, err := script.Run(ctx, rdb, []string{"k"}, "v").StringSlice()
		if !slices.Equal(got, []string{"k", "v"}) || err != nil {
			t.Errorf("Run: %q, %v", got, err)
		}
		if want := []string{"set", "evalsha", "evalsha", "eval"}; !slices.Equal(names(s.Log("set", "eval", "evalsha")), want) {
			t.Errorf("log %v", s.Log())
		}
	})
}

// What the library meets when a reply does not come.
func TestGoRedisMeetsLostReplies(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		rdb := clientOf(s, nil)
		defer rdb.Close()
		setNX := func(key string, patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return rdb.SetNX(ctx, key, "x", time.Minute).Err()
		}
		if err := setNX("warm", time.Second); err != nil {
			t.Fatal(err)
		}
		s.Lose(1, "set")
		if err := setNX("lost", time.Second); err != io.EOF {
			t.Errorf("lost: %v", err)
		}
		s.Mute(1, "set")
		start := time.Now()
		if err := setNX("muted", time.Second); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("muted: %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("muted: after %v", d)
		}
		if !has(s, "lost") || !has(s, "muted") {
			t.Error("a request whose reply is lost did not run")
		}
		synctest.Wait()
		if s.Conns() != 0 {
			t.Errorf("%d connections after both were given up", s.Conns())
		}
		s.Refuse(true)
		if err := setNX("refused", time.Second); err == nil || has(s, "refused") {
			t.Errorf("refused: %v", err)
		}
		// After as many failed dials as the pool has places, go-redis probes in the
		// background and looks only once a second whether the client has been closed.
		rdb.Close()
		time.Sleep(time.Second)
	})
}

// On a socket go-redis peeks before it uses an idle connection again, so a server's
// orderly close costs no error; it has to be so here.
func TestGoRedisNoticesAClosedIdleConnection(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, s *Server) {
		rdb := clientOf(s, nil)
		defer rdb.Close()
		for i := range 3 {
			if err := rdb.Set(t.Context(), fmt.Sprint(i), "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			s.Restart(true)
			time.Sleep(time.Second)
		}
		if s.Accepted() != 3 {
			t.Errorf("accepted %d", s.Accepted())
		}
	})
}

func TestNothingIsLeftWhenAllIsClosed(t *testing.T) {
	for _, faulty := range []bool{false, true} {
		// The bubble itself fails when a goroutine is left behind.
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{})
			clients := []*redis.Client{clientOf(s, nil), clientOf(s, nil), clientOf(s, nil)}
			ask := func(want error) {
				for _, rdb := range clients {
					go func() {
						if err := rdb.Incr(context.WithoutCancel(t.Context()), "n").Err(); !errors.Is(err, want) {
							t.Errorf("INCR: %v", err)
						}
					}()
				}
				synctest.Wait()
			}
			ask(nil)
			if n := s.Conns(); n != len(clients) {
				t.Errorf("%d connections of %d clients", n, len(clients))
			}
			if faulty {
				s.Hang()
				ask(syscall.ECONNRESET)
				s.Blackhole(true)
				clients = append(clients, clientOf(s, func(o *redis.Options) { o.PoolSize = 2 }))
				go clients[3].Ping(context.WithoutCancel(t.Context()))
				synctest.Wait()
				s.Close()
				synctest.Wait()
			}
			for _, rdb := range clients {
				rdb.Close()
			}
			synctest.Wait()
			if s.Conns() != 0 {
				t.Errorf("%d connections left", s.Conns())
			}
			s.Close()
			s.Close()
		})
	}
}
