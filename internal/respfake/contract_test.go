package respfake

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// How a step of the contract is compared: exactly, unless it begins with
//
//	~  numbers above zero need only both be above zero
//	#  runs of digits need only both be there, and loaded modules don't matter
const (
	roughly = "~"
	shape   = "#"
)

var scenarios = []struct {
	name  string
	kind  string // which server: see startReal
	steps []string
}{
	{"strings", "plain", []string{
		"SET k v NX GET", "SET k v2 NX GET", "GET k", "SET k v2 XX GET PX 100000", "~PTTL k", "SET k v3 KEEPTTL", "~TTL k",
		"SET k v4", "PTTL k", "TTL k", "SET k v5 GET", "SET k v NX", "SET none v XX", "SET none v XX GET", "SET none v GET",
		"SET k v EX 100", "~PTTL k", "set k v nx get px 100000", "SET k v KEEPTTL KEEPTTL GET GET", "SET k v EX 100 EX 200",
		"SET k v NX XX", "SET k v XX NX", "SET k v PX 0", "SET k v PX -1", "SET k v PX abc", "SET k v PX 1.5", "SET k v PX +5", "SET k v PX 05",
		"SET k v PX", "SET k v EX 10 PX 10", "SET k v PX 10 EX 10", "SET k v PX 10 KEEPTTL", "SET k v KEEPTTL PX 10",
		"SET k v EX 99999999999999999", "SET k v PX 9223372036854775807", "SET k v PX 99999999999999999999", "SET k v BOGUS", "SET k", "SET",
		"GET", "GET a b", "GET nothing", "MGET k nothing k", "MGET", "INCR n", "INCR n", "SET n 9223372036854775807", "INCR n",
		"SET n abc", "INCR n", "SET n 5 PX 100000", "INCR n", "~PTTL n", "INCR",
	}},
	{"another type", "plain", []string{
		"LPUSH l a b", "LPUSH l c", "SET l x NX GET", "SET l x GET", "SET l x NX", "GET l", "MGET l k", "INCR l", "TYPE l", "TYPE none", "LPUSH k2",
		"SET s abc", "TYPE s", "LPUSH s a", "PEXPIRE l 100000", "~PTTL l", "SET l x XX PX 100000", "TYPE l", "DEL l", "EXISTS l",
	}},
	{"expiry", "plain", []string{
		"SET s v", "PEXPIRE s 100000 XX", "PEXPIRE s 100000 GT", "PEXPIRE s 100000 LT", "~PTTL s", "PEXPIRE s 100000 NX",
		"PEXPIRE s 50000 XX", "PEXPIRE s 40000 GT", "PEXPIRE s 40000 LT", "PEXPIRE s 90000 LT", "PEXPIRE s 90000 GT", "PEXPIRE s 80000 xx gt",
		"PEXPIRE s 400 NX XX", "PEXPIRE s 400 GT LT", "PEXPIRE s 400 ZZ", "PEXPIRE s abc", "PEXPIRE s abc ZZ", "PEXPIRE s 9223372036854775807",
		"PEXPIRE none 10", "PEXPIRE none 9223372036854775807", "PEXPIRE s", "~TTL s", "PTTL none", "TTL none", "PTTL", "TTL a b",
		"PEXPIRE s 0", "EXISTS s", "SET s v", "PEXPIRE s -5", "GET s",
	}},
	{"keys", "plain", []string{
		"SET a 1", "LPUSH b 1", "EXISTS a a b c", "EXISTS", "DEL", "DEL a b c a", "DBSIZE", "DBSIZE x", "SET key:[1] 1",
		`KEYS key:\[1\]`, "KEYS *", "KEYS k?y*", "KEYS [a-l]ey*", "KEYS [^k]ey*", "KEYS [l-a]*", "KEYS x*", "KEYS",
		"SCAN 0", "SCAN 0 MATCH key* COUNT 100", "SCAN 0 MATCH x* COUNT 100", "SCAN 0 TYPE string", "SCAN 0 TYPE LIST", "SCAN abc",
		"SCAN 0 COUNT 0", "SCAN 0 COUNT x", "SCAN 0 FOO", "SCAN 0 FOO 1", "SCAN", "SELECT 3", "DBSIZE", "SET z 1", "DBSIZE", "FLUSHALL FOO",
		"FLUSHALL SYNC", "SELECT 0", "DBSIZE", "FLUSHALL", "FLUSHALL ASYNC x",
		"SELECT 16", "SELECT -1", "SELECT abc", "SELECT 99999999999", "SELECT", "SELECT 1 2", "#TIME", "TIME x",
	}},
	{"connection", "plain", []string{
		"PING", "PING hi", "PING a b", "FOO", "FOO a b c", "foo " + strings.Repeat("x", 200) + " y", "foo " + strings.Repeat("x ", 100),
		"#CLIENT ID", "CLIENT ID x", "CLIENT FOO", "client foo", "CLIENT", "CLIENT KILL ID 99999", "CLIENT KILL ID abc",
		"CLIENT KILL ID 0", "CLIENT KILL ID -1", "CLIENT KILL", "CLIENT KILL 1.2.3.4:1", "CLIENT KILL FOO 3", "CLIENT KILL ID",
		"CLIENT KILL ID 99999 SKIPME", "CLIENT KILL ID 99999 SKIPME yes", "CLIENT KILL ID 99999 SKIPME maybe", "CLIENT GETNAME", "CLIENT SETNAME ab", "CLIENT GETNAME",
		"CLIENT SETNAME", "CLIENT SETINFO lib-name x", "CLIENT SETINFO LIB-VER 1.2", "CLIENT SETINFO foo x", "CLIENT SETINFO lib-name",
		"#HELLO", "#HELLO 2", "HELLO 4", "HELLO abc", "HELLO 3 AUTH a b", "HELLO 3 AUTH a", "HELLO 3 FOO", "HELLO 3 AUTH default x SETNAME",
		"#HELLO 3 SETNAME foo", "GET none", "MGET none", "SET q 1 NX GET", "CONFIG GET maxmemory", "CONFIG GET nosuch", "INFO nosuch",
		"#hello 3 auth default x setname bar", "CLIENT GETNAME", "HELLO 9", "GET none", "#HELLO 2", "GET none",
		"CONFIG GET MAXMEMORY-POLIC?", "CONFIG GET", "CONFIG", "CONFIG FOO", "AUTH x", "AUTH a b", "AUTH default anything", "AUTH", "AUTH a b c",
		"CLUSTER KEYSLOT a", "QUIT",
	}},
	{"scripts", "plain", []string{
		"EVALSHA abc 0", "EVALSHA ffffffffffffffffffffffffffffffffffffffff 1 k", "EVALSHA ffffffffffffffffffffffffffffffffffffffff -1",
		"EVALSHA ffffffffffffffffffffffffffffffffffffffff 2 k", "EVALSHA ffffffffffffffffffffffffffffffffffffffff x k", "EVALSHA x", "EVAL", "EVAL x",
		"EVAL return{1,'a',false,{2}} 0", "EVAL return{1,'a',false,{2}} x", "EVALSHA 3cae69a7c1e0a52c79f1f5e8cf0d37c2e6a3d3ff 0",
		"SCRIPT LOAD return{KEYS[1],ARGV[1]}", "SCRIPT EXISTS 0 " + digest("return{KEYS[1],ARGV[1]}"),
		"EVALSHA " + digest("return{KEYS[1],ARGV[1]}") + " 1 k a", "EVALSHA " + strings.ToUpper(digest("return{KEYS[1],ARGV[1]}")) + " 1 k a",
		"SCRIPT FLUSH FOO", "SCRIPT FLUSH SYNC ASYNC", "SCRIPT FLUSH ASYNC", "EVALSHA " + digest("return{KEYS[1],ARGV[1]}") + " 1 k a",
		"EVAL return{KEYS[1],ARGV[1]} 1 k a", "EVALSHA " + digest("return{KEYS[1],ARGV[1]}") + " 1 k a", "SCRIPT FLUSH",
		"EVAL return{err='MY_error'} 0", "EVAL return(true) 0", "EVAL return(false) 0", "EVAL return(nil) 0", "#HELLO 3", "EVAL return(false) 0",
		"SCRIPT FOO", "SCRIPT", "SCRIPT LOAD", "SCRIPT LOAD a b", "SCRIPT EXISTS",
	}},
	{"nobody yet", "users", []string{
		"GET a", "PING", "HELLO", "HELLO 3", "HELLO 3 AUTH default bad", "CLIENT ID", "FOO x", "CLIENT FOO", "GET", "AUTH bad", "AUTH default bad",
		"AUTH nobody x", "AUTH", "AUTH sec", "GET a", "AUTH bad", "GET a", "#HELLO 3 AUTH bob pw", "INFO", "#HELLO 2 AUTH default sec", "PING",
	}},
	{"bob", "users", []string{
		"AUTH bob wrong", "AUTH bob pw", "#CLIENT ID", "CLIENT KILL ID 99999", "CLIENT KILL", "INFO", "info server", "DEL a", "DEL", "EVAL x", "EVAL x 0",
		"SCRIPT FOO", "SCRIPT LOAD return(1)", "SCRIPT FLUSH", "GET a", "HELLO 2 AUTH bob wrong", "GET a", "HELLO 2 AUTH bob", "#HELLO 3 AUTH bob pw SETNAME x",
		"CLIENT GETNAME", "QUIT",
	}},
	{"cluster", "cluster", []string{
		"MGET a b", "MGET {x}a {x}b", "MGET a a", "DEL a b", "EXISTS a b", "EVAL return(true) 2 a b", "EVAL return(true) 2 {a}1 {a}2",
		"EVALSHA ffffffffffffffffffffffffffffffffffffffff 2 a b", "EVALSHA ffffffffffffffffffffffffffffffffffffffff 3 a b",
		"SELECT 0", "SELECT 1", "SELECT -1", "CLUSTER KEYSLOT a", "CLUSTER KEYSLOT {}a", "CLUSTER KEYSLOT foo{}{bar}", "CLUSTER KEYSLOT foo{{bar}}zap",
		"CLUSTER KEYSLOT foo{bar}{zap}", "CLUSTER KEYSLOT 123456789", "CLUSTER KEYSLOT {abc", "CLUSTER KEYSLOT a}b{c}", "CLUSTER KEYSLOT", "#HELLO",
	}},
}

// TestContract runs the same requests on the fake and on a real server.
func TestContract(t *testing.T) {
	for kind, opt := range map[string]Options{
		"plain":   {},
		"cluster": {Cluster: true},
		"users":   {Users: map[string]User{"default": {Password: "sec"}, "bob": {Password: "pw", Deny: []string{"client|kill", "info", "eval", "del"}}}},
	} {
		t.Run(kind, func(t *testing.T) {
			addr, admin := startReal(t, kind)
			opt.Version = infoFields(t, admin)["redis_version"]
			fake := New(opt)
			defer fake.Close()
			fake.Script("return{1,'a',false,{2}}", func(*Tx, []string, []string) any { return []any{1, "a", nil, []any{2}} })
			fake.Script("return{KEYS[1],ARGV[1]}", func(_ *Tx, keys, argv []string) any { return []any{keys[0], argv[0]} })
			fake.Script("return{err='MY_error'}", func(*Tx, []string, []string) any { return failure("MY_error") })
			fake.Script("return(true)", func(*Tx, []string, []string) any { return true })
			fake.Script("return(false)", func(*Tx, []string, []string) any { return false })
			fake.Script("return(nil)", func(*Tx, []string, []string) any { return nil })
			for _, sc := range scenarios {
				if sc.kind == kind {
					t.Run(sc.name, func(t *testing.T) { compare(t, fake, addr, admin, sc.steps) })
				}
			}
		})
	}
}

func compare(t *testing.T, fake *Server, addr string, admin *wire, steps []string) {
	fake.Do(0, func(*Tx) { fake.flush() })
	admin.want(t, "FLUSHALL", "+OK")
	ours, theirs := connect(t, fake), dialReal(t, addr)
	for _, step := range steps {
		line := strings.TrimLeft(step, roughly+shape)
		norm := exact
		switch {
		case strings.HasPrefix(step, roughly):
			norm = anyPositive
		case strings.HasPrefix(step, shape):
			norm = anyDigits
		}
		got, want := norm(ours.ask(t, line)), norm(theirs.ask(t, line))
		if got != want {
			t.Errorf("%s\n fake %s\n real %s", line, got, want)
		}
	}
}

func exact(reply string) string { return reply }

func anyPositive(reply string) string {
	return regexp.MustCompile(`^:[1-9]\d*$`).ReplaceAllString(reply, ":positive")
}

func anyDigits(reply string) string {
	reply = regexp.MustCompile(`\d+`).ReplaceAllString(reply, "0")
	return regexp.MustCompile(`("modules" \*)\[.*\]`).ReplaceAllString(reply, "$1[]")
}

// TestContractKill compares what becomes of killed connections.
func TestContractKill(t *testing.T) {
	addr, _ := startReal(t, "plain")
	fake := New(Options{})
	defer fake.Close()
	for name, open := range map[string]func() *wire{
		"fake": func() *wire { return connect(t, fake) },
		"real": func() *wire { return dialReal(t, addr) },
	} {
		victim, killer := open(), open()
		id := victim.ask(t, "CLIENT ID")[1:]
		killer.want(t, "CLIENT KILL ID "+id, ":1")
		if reply, err := readReply(victim.r); err != io.EOF {
			t.Errorf("%s: the killed one reads %s, %v", name, reply, err)
		}
		killer.want(t, "CLIENT KILL ID "+id, ":0")
		id = killer.ask(t, "CLIENT ID")[1:]
		killer.want(t, "CLIENT KILL ID "+id, ":0")
		killer.want(t, "CLIENT KILL SKIPME yes ID "+id, ":0")
		killer.want(t, "CLIENT KILL ID "+id+" SKIPME no", ":1")
		if reply, err := readReply(killer.r); err != io.EOF {
			t.Errorf("%s: after its own kill it reads %s, %v", name, reply, err)
		}
	}
}

// TestContractInfo compares what INFO says about a process that has just started.
func TestContractInfo(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		kind := map[bool]string{false: "plain", true: "cluster"}[cluster]
		t.Run(kind, func(t *testing.T) {
			_, admin := startReal(t, kind)
			real := infoFields(t, admin)
			s := New(Options{Cluster: cluster, Version: real["redis_version"]})
			defer s.Close()
			w := connect(t, s)
			fake := infoFields(t, w)
			for field, text := range fake {
				switch field {
				case "uptime_in_seconds", "process_id", "run_id", "master_replid":
					if anyHex(text) != anyHex(real[field]) {
						t.Errorf("%s: fake %q, real %q", field, text, real[field])
					}
				default:
					if text != real[field] {
						t.Errorf("%s: fake %q, real %q", field, text, real[field])
					}
				}
			}
			if one := w.ask(t, "INFO replication memory"); strings.Contains(one, "run_id") || !strings.Contains(one, "maxmemory:0") || !strings.Contains(one, "role:") {
				t.Errorf("two sections: %s", one)
			}
		})
	}
}

// anyHex hides the digits of a number and of a 40-digit identity, not its length.
func anyHex(s string) string {
	if _, err := strconv.Atoi(s); err == nil {
		return "number"
	}
	return regexp.MustCompile(`[0-9a-f]`).ReplaceAllString(s, "x")
}

func infoFields(t *testing.T, w *wire) map[string]string {
	t.Helper()
	text, err := strconv.Unquote(w.ask(t, "INFO")[1:])
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = v
		}
	}
	return fields
}
