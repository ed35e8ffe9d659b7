package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// simulated is a node of the world.
type simulated struct{ data data }

func (s *simulated) wall() time.Time { return time.Now() }

func (s *simulated) prepare(_ *testing.T, keys []prepared) {
	s.data = newData()
	now := s.wall().UnixMilli()
	for _, p := range keys {
		k := key{token: redlock.Token(p.token), noLock: p.token == "[]"}
		if p.units > 0 {
			k.until = now + int64(p.units)*unit.Milliseconds()
		}
		if p.token != "" {
			s.data.keys[p.name] = k
		}
		if p.count != "" {
			c := counter{until: now + 7*unit.Milliseconds(), broken: p.count == "x"}
			fmt.Sscan(p.count, &c.count)
			s.data.counters[p.name+":c"] = c
		}
	}
}

func (s *simulated) send(_ *testing.T, flight []*redlock.Op) {
	for _, op := range flight {
		op.Reply = s.data.carryOut(op, time.Duration(s.wall().UnixNano()), true, nil)
	}
}

func (s *simulated) state(_ *testing.T, name string) string {
	now := s.wall().UnixMilli()
	k, _ := s.data.find(name, now)
	var left time.Duration
	if k.until != 0 {
		left = time.Duration(k.until-now) * time.Millisecond
	}
	c, _ := s.data.counter(name+":c", now)
	return described(s, string(k.token), left, c.count, c.broken, time.Duration(c.until-now)*time.Millisecond)
}

// real is a server that redlock.Redis talks to.
type real struct {
	conn  redlock.Conn
	admin *redis.Client
}

// hang is how long a server may take before it is given up for hung.
const hang = time.Minute

func startReal(t *testing.T, protocol int) *real {
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	server, err := redisproc.Start(ctx, redisproc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := &redis.Options{Addr: server.Addr(), Protocol: protocol, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	admin := redis.NewClient(options)
	conn, err := redlock.Redis(options).Connect(ctx, hang)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		admin.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &real{conn, admin}
}

func (r *real) wall() time.Time { return time.Now() }

func (r *real) prepare(t *testing.T, keys []prepared) {
	ctx := context.Background()
	_, err := r.admin.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushAll(ctx)
		for _, k := range keys {
			switch k.token {
			case "":
			case "[]":
				p.LPush(ctx, k.name, "t")
			default:
				p.Set(ctx, k.name, k.token, time.Duration(k.units)*unit)
			}
			if k.count != "" {
				p.Set(ctx, k.name+":c", k.count, 7*unit)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *real) send(t *testing.T, flight []*redlock.Op) {
	if err := r.conn.Send(context.Background(), flight); err != nil {
		t.Fatal(err)
	}
}

func (r *real) state(_ *testing.T, name string) string {
	ctx := context.Background()
	token := r.admin.Get(ctx, name).Val()
	if r.admin.Type(ctx, name).Val() == "list" {
		token = "[]"
	}
	var c fence.Token
	text := r.admin.Get(ctx, name+":c").Val()
	fmt.Sscan(text, &c)
	return described(r, token, r.admin.PTTL(ctx, name).Val(), c, text == "x", r.admin.PTTL(ctx, name+":c").Val())
}
