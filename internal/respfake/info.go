package respfake

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// info is what INFO, HELLO and CONFIG GET say about a process. Guarded by Server.mu.
type info struct {
	started time.Time
	fields  map[string]string
	told    map[string]string // by SetInfo; outlives a restart
	boots   int
}

// sections of INFO and their fields, in order.
var sections = []struct {
	name   string
	fields []string
}{
	{"Server", []string{"redis_version", "redis_mode", "process_id", "run_id", "uptime_in_seconds"}},
	{"Memory", []string{"maxmemory", "maxmemory_policy"}},
	{"Replication", []string{"role", "master_replid"}},
	{"Cluster", []string{"cluster_enabled"}},
}

func (i *info) boot(opt Options) {
	mode, enabled := "standalone", "0"
	if opt.Cluster {
		mode, enabled = "cluster", "1"
	}
	i.boots++
	i.started = time.Now()
	i.fields = map[string]string{
		"redis_version":    opt.Version,
		"redis_mode":       mode,
		"process_id":       strconv.Itoa(1000 + i.boots),
		"run_id":           randomID(),
		"maxmemory":        "0",
		"maxmemory_policy": "noeviction",
		"role":             "master",
		"master_replid":    randomID(),
		"cluster_enabled":  enabled,

		"cluster_known_nodes": "1", // CLUSTER INFO's
	}
}

// randomID is unlike every other, so that two servers of one test never pass for
// the same process.
func randomID() string {
	var b [20]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (i *info) field(name string, now time.Time) string {
	if told, ok := i.told[name]; ok {
		return told
	}
	if name == "uptime_in_seconds" {
		return strconv.FormatInt(int64(now.Sub(i.started)/time.Second), 10)
	}
	return i.fields[name]
}

// SetInfo makes the server claim something else about itself, in INFO and wherever
// else it says it: role "slave", another server's run_id, a maxmemory_policy. It holds
// until it is set again, over restarts too. A field that INFO does not show is refused with a panic.
func (s *Server) SetInfo(field, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.info.fields[field]; !known && field != "uptime_in_seconds" {
		panic(fmt.Sprintf("respfake: INFO has no field %q", field))
	}
	if s.info.told == nil {
		s.info.told = make(map[string]string)
	}
	s.info.told[field] = text
}

func infoCommand(x *call) any {
	if len(x.args) > 1 && !x.srv.since(7, 0) {
		return errSyntax
	}
	wanted := make(map[string]bool)
	for _, arg := range x.args {
		wanted[strings.ToLower(arg)] = true
	}
	all := len(x.args) == 0 || wanted["all"] || wanted["default"] || wanted["everything"]
	var parts []string
	for _, sec := range sections {
		if !all && !wanted[strings.ToLower(sec.name)] {
			continue
		}
		part := "# " + sec.name + "\r\n"
		for _, f := range sec.fields {
			part += f + ":" + x.srv.info.field(f, x.now) + "\r\n"
		}
		parts = append(parts, part)
	}
	return verbatim(strings.Join(parts, "\r\n"))
}

// configGet knows the parameters a lock has to look at.
func configGet(x *call) any {
	found := mapping{}
	for _, name := range []string{"maxmemory", "maxmemory-policy"} {
		for _, pattern := range x.args {
			if glob(strings.ToLower(pattern), name) {
				field := strings.ReplaceAll(name, "-", "_")
				found = append(found, name, x.srv.info.field(field, x.now))
				break
			}
		}
	}
	return found
}
