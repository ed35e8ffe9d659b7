package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// oldest is the first version of Redis in which scripts may read the clock and
// write.
const oldest = 5

// Check asks the server, or every master of a cluster, whether it is fit to keep
// records, and returns nil or what is wrong, all of it: it evicts keys, is a
// replica, is too old, keeps nothing through a restart, or the client does not end
// calls with their contexts. It is for the start of a service, which may well
// decide to live with what it says.
//
// It cannot find out whether a fail-over may lose writes: with replicas it always
// may.
func (s *Store) Check(ctx context.Context) error {
	masters, err := s.masters(ctx)
	if err != nil {
		return err
	}
	errs := []error{timeouts(s.client)}
	for _, master := range masters {
		// Each section on its own: servers before 7.0 take one argument.
		var info strings.Builder
		for _, section := range []string{"server", "replication", "memory", "persistence"} {
			text, err := master.Info(ctx, section).Result()
			if err != nil {
				return err
			}
			info.WriteString(text)
		}
		errs = append(errs, judge(facts(info.String())))
	}
	return errors.Join(errs...)
}

// timeouts says what is wrong with the client's own settings, where they show.
func timeouts(client redis.UniversalClient) error {
	enabled := true
	switch c := client.(type) {
	case *redis.Client:
		enabled = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		enabled = c.Options().ContextTimeoutEnabled
	}
	if !enabled {
		return errors.New("the client's ContextTimeoutEnabled is false: calls outlast their contexts")
	}
	return nil
}

// judge says what is wrong with a server that says this of itself.
func judge(fact map[string]string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	major, _, _ := strings.Cut(fact["redis_version"], ".")
	if v, err := strconv.Atoi(major); err != nil || v < oldest {
		wrong("its version is %q: want %d or later", fact["redis_version"], oldest)
	}
	if fact["role"] != "master" {
		wrong("its role is %q: want master", fact["role"])
	}
	if policy := fact["maxmemory_policy"]; policy != "noeviction" && fact["maxmemory"] != "0" {
		wrong("its maxmemory-policy is %q: it forgets records when memory is short, want noeviction", policy)
	}
	if fact["aof_enabled"] != "1" {
		wrong("its appendonly is off: a restart forgets records")
	}
	return errors.Join(errs...)
}

// facts are the lines of INFO.
func facts(info string) map[string]string {
	fact := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fact[name] = value
		}
	}
	return fact
}
