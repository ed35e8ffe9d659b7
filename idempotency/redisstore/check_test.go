package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

func TestAServerIsJudgedByWhatItSays(t *testing.T) {
	fit := map[string]string{
		"redis_version": "7.0.15", "role": "master", "maxmemory": "1048576", "maxmemory_policy": "noeviction", "aof_enabled": "1",
	}
	for _, c := range []struct{ fact, value, want string }{
		{"role", "master", ""},
		{"role", "slave", "role"},
		{"redis_version", "4.0.14", "version"},
		{"redis_version", "5.0.0", ""},
		{"redis_version", "10.0.0", ""},
		{"redis_version", "", "version"},
		{"maxmemory_policy", "volatile-lru", "maxmemory-policy"}, // these keys have an expiry
		{"maxmemory_policy", "allkeys-lru", "maxmemory-policy"},
		{"maxmemory", "0", ""},
		{"aof_enabled", "0", "appendonly"},
	} {
		info := ""
		for name, value := range fit {
			if name == c.fact {
				value = c.value
			}
			info += name + ":" + value + "\r\n"
		}
		err := judge(facts(info))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s is %q: %v, want %q", c.fact, c.value, err, c.want)
		}
	}
}

func TestCheckAsksAServer(t *testing.T) {
	redisproc.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		args     []string
		outlasts bool
		want     []string
	}{
		{args: []string{"--appendonly", "yes"}},
		{want: []string{"appendonly"}},
		{args: []string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, want: []string{"maxmemory-policy"}},
		{args: []string{"--appendonly", "yes", "--replicaof", "127.0.0.1 1"}, want: []string{"role"}},
		{args: []string{"--appendonly", "yes"}, outlasts: true, want: []string{"ContextTimeoutEnabled"}},
	} {
		server, err := redisproc.Start(ctx, redisproc.Options{Args: c.args})
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: !c.outlasts})
		err = New(client, Config{}).Check(ctx)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%q: %v", c.args, err)
		}
		for _, word := range c.want {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%q: %v, want %s", c.args, err, word)
			}
		}
		client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
}
