package redlock

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
)

// What a node says in INFO decides on its vote.
func TestWhatINFOSaysDecidesOnTheVote(t *testing.T) {
	denied := func(commands ...string) respfake.Options {
		return respfake.Options{Users: map[string]respfake.User{"default": {Deny: commands}}}
	}
	member := func(commands ...string) respfake.Options {
		o := denied(commands...)
		o.Cluster = true
		return o
	}
	type info map[string]string
	const (
		votes     = ""
		no        = "not a voter: "
		unsaid    = no + "it does not say what it is"
		forbidden = unsaid + ", so a restart would go unnoticed: permit INFO, and in cluster mode CLUSTER INFO, or set Config.AllowUnidentified"
		fresh     = "quarantined for 12s more: restarted 0s ago, MaxTTL 10s"
	)
	for name, c := range map[string]struct {
		server  respfake.Options
		info    info
		want    string // the vote's error
		allowed string // the same with AllowUnidentified
	}{
		"a master":                          {respfake.Options{}, nil, votes, votes},
		"INFO refused":                      {denied("info"), nil, forbidden, votes},
		"CLIENT ID refused":                 {denied("client|id"), nil, votes, votes},
		"a cluster's only node":             {member(), nil, votes, votes},
		"CLUSTER INFO refused":              {member("cluster|info"), nil, forbidden, votes},
		"of a cluster of three":             {member(), info{"cluster_known_nodes": "3"}, no + "it is one of 3 nodes of a cluster", no + "it is one of 3"},
		"Valkey, of a cluster of three":     {member(), info{"redis_mode": "", "cluster_known_nodes": "3"}, no + "it is one of 3 nodes of a cluster", no + "it is one of 3"},
		"says only its mode, of a cluster":  {member(), info{"cluster_enabled": "", "cluster_known_nodes": "3"}, no + "it is one of 3 nodes of a cluster", no + "it is one of 3"},
		"Valkey, CLUSTER INFO refused":      {member("cluster|info"), info{"redis_mode": ""}, forbidden, votes},
		"of a cluster of many":              {member(), info{"cluster_known_nodes": "lots"}, unsaid, votes},
		"of a cluster of nobody":            {member(), info{"cluster_known_nodes": ""}, unsaid, votes},
		"a replica":                         {respfake.Options{}, info{"role": "slave"}, no + "it is a replica", no + "it is a replica"},
		"a replica, by its new name":        {respfake.Options{}, info{"role": "replica"}, no + "it is a replica", no + "it is a replica"},
		"no role":                           {respfake.Options{}, info{"role": ""}, votes, votes},
		"no run_id":                         {respfake.Options{}, info{"run_id": ""}, unsaid, votes},
		"a replica without run_id":          {respfake.Options{}, info{"run_id": "", "role": "slave"}, unsaid, no + "it is a replica"},
		"no master_replid":                  {respfake.Options{}, info{"master_replid": ""}, votes, votes},
		"no uptime":                         {respfake.Options{}, info{"uptime_in_seconds": ""}, fresh, fresh},
		"uptime of no number":               {respfake.Options{}, info{"uptime_in_seconds": "a month"}, fresh, fresh},
		"uptime beyond all measure":         {respfake.Options{}, info{"uptime_in_seconds": "99999999999999999999"}, fresh, fresh},
		"just started":                      {respfake.Options{}, info{"uptime_in_seconds": "0"}, fresh, fresh},
		"started in the future":             {respfake.Options{}, info{"uptime_in_seconds": "-60"}, fresh, fresh},
		"up for 11 s":                       {respfake.Options{}, info{"uptime_in_seconds": "11"}, "quarantined for 1s more: restarted 11s ago, MaxTTL 10s", "quarantined for 1s more"},
		"up for 12 s":                       {respfake.Options{}, info{"uptime_in_seconds": "12"}, votes, votes},
		"before Redis 7, just started":      {respfake.Options{Version: "6.2.14"}, info{"uptime_in_seconds": "0"}, fresh, fresh},
		"before Redis 7, a replica":         {respfake.Options{Version: "6.2.14"}, info{"role": "slave"}, no + "it is a replica", no + "it is a replica"},
		"of a cluster of two, just started": {member(), info{"cluster_known_nodes": "2", "uptime_in_seconds": "0"}, no + "it is one of 2", no + "it is one of 2"},
	} {
		for allowed, want := range map[bool]string{false: c.want, true: c.allowed} {
			t.Run(name+map[bool]string{true: ", allowed"}[allowed], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servers, nodes := respNodes(t, 1, c.server)
					for field, text := range c.info {
						servers[0].SetInfo(field, text)
					}
					l := newLocker(t, nodes, Config{MaxTTL: 10 * time.Second, AllowUnidentified: allowed})
					if want == votes {
						cycle(t, l, "k")
						return
					}
					vote := noQuorum(t, l, "k").Votes[0]
					if vote.Err == nil || !strings.HasPrefix(vote.Err.Error(), want) {
						t.Errorf("got %v, want %q", vote, want)
					}
					var why *QuarantineError
					if in := errors.As(vote.Err, &why); in != (vote.Quarantined > 0) || in == errors.Is(vote.Err, errNoVoter) {
						t.Errorf("%+v", vote)
					}
				})
			})
		}
	}
}

// A second address is found out by the run_id.
func TestTheRunIDOfAnotherIsNoSecondVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		servers[0].SetInfo("run_id", "the same")
		servers[1].SetInfo("run_id", "the same")
		l := newLocker(t, nodes, Config{})
		cycle(t, l, "k")
		servers[2].Refuse(true)
		servers[2].Cut()
		findOut(l)
		failure := noQuorum(t, l, "k")
		if text := failure.Error(); !strings.Contains(text, "not a voter: it is the same server as 127.0.0.1:700") {
			t.Error(text)
		}
	})
}

// A server that is restarted is noticed by the connection that breaks, and one that
// is made a replica, or was one for a while, also when it is idle and none does.
func TestRestartsAndNewDataAreNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(s *respfake.Server)
		want    string // "" if it votes
		durable string
	}{
		"nothing":        {func(s *respfake.Server) { s.Cut() }, "", ""},
		"restart":        {func(s *respfake.Server) { s.Restart(true) }, "restarted", ""},
		"other data":     {func(s *respfake.Server) { s.SetInfo("master_replid", "new"); s.Cut() }, "had its data replaced", "had its data replaced"},
		"clock set":      {func(s *respfake.Server) { s.SetInfo("uptime_in_seconds", "-60"); s.Cut() }, "", ""},
		"made a replica": {func(s *respfake.Server) { s.SetInfo("role", "slave"); s.Cut() }, "it is a replica", "it is a replica"},

		"other data, and no connection breaks":     {func(s *respfake.Server) { s.SetInfo("master_replid", "new") }, "had its data replaced", "had its data replaced"},
		"made a replica, and no connection breaks": {func(s *respfake.Server) { s.SetInfo("role", "slave") }, "it is a replica", "it is a replica"},
		"clock set, and no connection breaks":      {func(s *respfake.Server) { s.SetInfo("uptime_in_seconds", "-60") }, "", ""},
	} {
		for durable, want := range map[bool]string{false: c.want, true: c.durable} {
			t.Run(name+map[bool]string{true: ", durable"}[durable], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					servers, nodes := respNodes(t, 1, respfake.Options{})
					l := newLocker(t, nodes, Config{DurableNodes: durable})
					cycle(t, l, "k")
					synctest.Wait()
					c.happens(servers[0])
					time.Sleep(idlePing + laterPause)
					findOut(l)
					if want == "" {
						cycle(t, l, "k")
						return
					}
					if vote := noQuorum(t, l, "k").Votes[0]; !strings.Contains(vote.String(), want) {
						t.Errorf("got %v, want %q", vote, want)
					}
				})
			})
		}
	}
}
