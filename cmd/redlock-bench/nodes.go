package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Kinds of nodes.
const (
	kindEmbedded = "embedded"
	kindSpawn    = "spawn"
	kindRemote   = "remote"
)

// mostNodes is how many nodes a Locker takes.
const mostNodes = 15

// nodeSet says which nodes a run is on.
type nodeSet struct {
	kind  string
	count int
	urls  []string // of remote nodes, with their passwords

	project string // of Compose
}

// urlStart finds where the URLs of a list begin. A password may hold commas.
var urlStart = regexp.MustCompile(`(?:^|,)\s*(?:rediss?|unix)://`)

// parseNodes reads the value of -nodes. Its errors never repeat a URL: what is
// wrong with one may be that its password is not where it should be.
func parseNodes(text string) (nodeSet, error) {
	kind, number, _ := strings.Cut(text, ":")
	if kind == kindEmbedded || kind == kindSpawn {
		n, err := 5, error(nil)
		if kind != text {
			n, err = strconv.Atoi(number)
		}
		if err != nil || n < 1 || n > mostNodes {
			return nodeSet{}, fmt.Errorf("%q: want %s:N with N from 1 to %d", text, kind, mostNodes)
		}
		return nodeSet{kind: kind, count: n}, nil
	}
	starts := urlStart.FindAllStringIndex(text, -1)
	if len(starts) == 0 || starts[0][0] != 0 {
		return nodeSet{}, errors.New("want embedded:N, spawn:N, or URLs with a comma between them, each redis://…, rediss://… or unix://…")
	}
	set := nodeSet{kind: kindRemote, count: len(starts)}
	if set.count > mostNodes {
		return nodeSet{}, fmt.Errorf("%d URLs: want 1 to %d", set.count, mostNodes)
	}
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		u := strings.Trim(text[at[0]:end], ", ")
		if !readable(u) {
			return nodeSet{}, fmt.Errorf("URL %d of %d cannot be read: want redis://user:password@host:port/db, rediss:// for TLS, "+
				"or unix://user:password@/path, with what is special in the password percent-encoded", i+1, set.count)
		}
		set.urls = append(set.urls, u)
	}
	return set, nil
}

// readable reports whether a URL names a node, and surely the one that was meant:
// where a password was not encoded, or a host is missing, ParseURL may find
// another.
func readable(nodeURL string) bool {
	opts, err := redis.ParseURL(nodeURL)
	if err != nil || strings.Contains(nodeURL, "#") {
		return false
	}
	u, err := url.Parse(nodeURL)
	if err != nil {
		return false
	}
	if opts.Network == "unix" {
		return u.Host == ""
	}
	// A comma in the host is one before a server without its scheme.
	return u.Hostname() != "" && !strings.Contains(u.Host, ",")
}

// masked is a node's URL for people: without its password, and without its
// parameters.
func masked(nodeURL string) string {
	u, err := url.Parse(nodeURL)
	if err != nil {
		return "a node" // parseNodes has excluded it
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// cluster is a set of running nodes.
type cluster struct {
	urls    []string
	stop    []func() error // of each node that this program runs
	lead    time.Duration  // how far a node's timers may run ahead in one step
	durable bool           // no node forgets anything while it is used
}

// up starts the nodes of a set, or takes them as they are.
func (set nodeSet) up(ctx context.Context) (*cluster, error) {
	// What this program runs it does not restart.
	c := &cluster{urls: set.urls, durable: set.kind != kindRemote}
	if set.kind == kindEmbedded {
		c.lead = embeddedTick
	}
	for i := 0; i < set.count && set.kind != kindRemote; i++ {
		addr, stop, err := startNode(ctx, set.kind)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("node %d of %d: %w", i+1, set.count, err), c.down())
		}
		c.urls = append(c.urls, "redis://"+addr)
		c.stop = append(c.stop, stop)
	}
	return c, nil
}

func startNode(ctx context.Context, kind string) (addr string, stop func() error, err error) {
	if kind == kindEmbedded {
		e, err := startEmbedded()
		if err != nil {
			return "", nil, err
		}
		return e.addr().String(), e.close, nil
	}
	s, err := redisproc.Start(ctx, redisproc.Options{})
	if err != nil {
		return "", nil, err
	}
	return s.Addr(), s.Close, nil
}

// down ends the nodes that this program runs.
func (c *cluster) down() error {
	var errs []error
	for _, stop := range c.stop {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}
