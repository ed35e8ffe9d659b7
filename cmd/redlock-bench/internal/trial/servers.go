package trial

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// asking is how long a server may take to answer a question of ours.
const asking = 5 * time.Second

// servers are connections to the nodes that no implementation has to do with.
type servers []*redis.Client

func connect(urls []string) (servers, error) {
	var all servers
	for _, u := range urls {
		opts, err := redis.ParseURL(u)
		if err != nil {
			all.close()
			return nil, err
		}
		opts.PoolSize, opts.MaxRetries, opts.DialerRetries = 1, -1, 1
		opts.DialTimeout, opts.ReadTimeout, opts.ContextTimeoutEnabled = asking, asking, true
		opts.DisableIdentity = true
		opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		all = append(all, redis.NewClient(opts))
	}
	return all, nil
}

func (all servers) close() {
	for _, c := range all {
		c.Close()
	}
}

// traffic is what servers have done since they started.
type traffic struct {
	commands, bytes int64
	known           bool
}

// traffic asks each server, one after the other. What asking costs is given as
// well: it is in the next answer.
func (all servers) traffic(ctx context.Context) (t, asked traffic) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	t.known = len(all) > 0
	for _, c := range all {
		text, err := c.Info(ctx, "stats").Result()
		commands, known := infoNumber(text, "total_commands_processed")
		in, knowsIn := infoNumber(text, "total_net_input_bytes")
		out, knowsOut := infoNumber(text, "total_net_output_bytes")
		if err != nil || !known || !knowsIn || !knowsOut {
			return traffic{}, traffic{}
		}
		t.commands += commands
		t.bytes += in + out
		asked.commands++
		asked.bytes += int64(len("*2\r\n$4\r\ninfo\r\n$5\r\nstats\r\n") + len("$0000\r\n\r\n") + len(text))
	}
	return t, asked
}

// infoNumber is a field of INFO's answer.
func infoNumber(info, name string) (int64, bool) {
	for line := range strings.Lines(info) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+":"); is {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// left counts the keys with a prefix on all servers; nil if one could not be
// asked. Counters of fences are there to stay.
func (all servers) left(ctx context.Context, prefix string) *int {
	ctx, cancel := context.WithTimeout(ctx, 3*asking)
	defer cancel()
	count := 0
	for _, c := range all {
		keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if !strings.HasSuffix(keys.Val(), ":fence") {
				count++
			}
		}
		if keys.Err() != nil {
			return nil
		}
	}
	return &count
}
