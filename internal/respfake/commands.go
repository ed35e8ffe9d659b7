package respfake

import (
	"fmt"
	"strings"
	"time"
)

// A call is one request about to be run.
type call struct {
	srv  *Server
	ses  *session
	now  time.Time
	name string // lower case, with its subcommand: "client|kill"
	args []string
	cmd  command
}

// tx is the database the session has selected.
func (x *call) tx() *Tx { return x.srv.tx(x.ses.db, x.now) }

type command struct {
	min, max int // number of arguments behind the name; max < 0: any
	run      func(x *call) any
	keys     func(args []string) []string // which of them are keys; nil: none
	free     bool                         // may be run before authentication
	major    int                          // first version that has it; 0: all
	minor    int
}

const many = -1

var commands = map[string]command{
	"auth":  {min: 1, max: many, run: auth, free: true},
	"hello": {min: 0, max: many, run: hello, free: true},
	"quit":  {min: 0, max: many, run: quit, free: true},

	"ping":           {min: 0, max: many, run: ping},
	"select":         {min: 1, max: 1, run: selectDB},
	"client|id":      {min: 0, max: 0, run: clientID},
	"client|kill":    {min: 1, max: many, run: clientKill},
	"client|getname": {min: 0, max: 0, run: clientGetName},
	"client|setname": {min: 1, max: 1, run: clientSetName},
	"client|setinfo": {min: 2, max: 2, run: clientSetInfo, major: 7, minor: 2},

	"info":            {min: 0, max: many, run: infoCommand},
	"config|get":      {min: 1, max: many, run: configGet},
	"cluster|info":    {run: clusterInfo},
	"cluster|keyslot": {min: 1, max: 1, run: clusterKeySlot},
	"time":            {min: 0, max: 0, run: timeCommand},

	"get":     {min: 1, max: 1, run: get, keys: firstKey},
	"mget":    {min: 1, max: many, run: mget, keys: everyKey},
	"set":     {min: 2, max: many, run: set, keys: firstKey},
	"incr":    {min: 1, max: 1, run: incr, keys: firstKey},
	"lpush":   {min: 2, max: many, run: lpush, keys: firstKey},
	"del":     {min: 1, max: many, run: del, keys: everyKey},
	"exists":  {min: 1, max: many, run: exists, keys: everyKey},
	"type":    {min: 1, max: 1, run: typeCommand, keys: firstKey},
	"ttl":     {min: 1, max: 1, run: ttl, keys: firstKey},
	"pttl":    {min: 1, max: 1, run: pttl, keys: firstKey},
	"pexpire": {min: 2, max: many, run: pexpire, keys: firstKey},

	"keys":     {min: 1, max: 1, run: keysCommand},
	"scan":     {min: 1, max: many, run: scan},
	"dbsize":   {min: 0, max: 0, run: dbsize},
	"flushall": {min: 0, max: many, run: flushAll},

	"eval":          {min: 2, max: many, run: eval, keys: countedKeys},
	"evalsha":       {min: 2, max: many, run: evalSHA, keys: countedKeys},
	"script|load":   {min: 1, max: 1, run: scriptLoad},
	"script|exists": {min: 1, max: many, run: scriptExists},
	"script|flush":  {min: 0, max: many, run: scriptFlush},
}

// containers are the commands that are nothing without a subcommand.
var containers = map[string]bool{"client": true, "config": true, "cluster": true, "script": true}

func firstKey(args []string) []string { return args[:1] }
func everyKey(args []string) []string { return args }

// countedKeys are the keys of EVAL: a source, their number, they themselves. A
// wrong number is the command's to report.
func countedKeys(args []string) []string {
	n, err := parseInt(args[1])
	if err != nil || n < 0 || n > int64(len(args)-2) {
		return nil
	}
	return args[2 : 2+n]
}

// resolve finds out what a request wants. The call has a name even when it is
// refused.
func (s *Server) resolve(c *session, args []string, now time.Time) (x *call, refused any) {
	x = &call{srv: s, ses: c, now: now, name: strings.ToLower(args[0]), args: args[1:]}
	container := containers[x.name]
	if container {
		if len(args) < 2 {
			return x, arityError(x.name)
		}
		x.name += "|" + strings.ToLower(args[1])
		x.args = args[2:]
	}
	cmd, known := commands[x.name]
	known = known && s.since(cmd.major, cmd.minor) && !(s.opt.NoHello && x.name == "hello")
	switch {
	case !known && container:
		return x, s.unknownSubcommand(args)
	case !known:
		return x, s.unknownCommand(args)
	case len(x.args) < cmd.min, cmd.max >= 0 && len(x.args) > cmd.max:
		return x, arityError(x.name)
	}
	x.cmd = cmd
	return x, nil
}

// execute runs a call, or refuses it in the order of Redis' own checks.
func (s *Server) execute(x *call) any {
	if err := x.forbidden(); err != nil {
		return err
	}
	if s.opt.Cluster && x.cmd.keys != nil && !oneSlot(x.cmd.keys(x.args)) {
		return errCrossSlot
	}
	if text := s.answer(x.name); text != "" {
		return failure(text)
	}
	return x.cmd.run(x)
}

func arityError(name string) error {
	return failf("ERR wrong number of arguments for '%s' command", name)
}

func (s *Server) unknownSubcommand(args []string) error {
	text := "ERR unknown subcommand '%s'. Try %s HELP."
	if !s.since(7, 0) {
		text = "ERR Unknown subcommand or wrong number of arguments for '%s'. Try %s HELP."
	}
	return failf(text, args[1], strings.ToUpper(args[0]))
}

// unknownCommand quotes what was sent, up to about 128 bytes of it.
func (s *Server) unknownCommand(args []string) error {
	text, each := "ERR unknown command '%s', with args beginning with: %s", "'%s' "
	if !s.since(7, 0) {
		text, each = "ERR unknown command `%s`, with args beginning with: %s", "`%s`, "
	}
	const limit = 128
	quoted := ""
	for _, arg := range args[1:] {
		if len(quoted) >= limit {
			break
		}
		quoted += fmt.Sprintf(each, arg[:min(len(arg), limit-len(quoted))])
	}
	return failf(text, args[0][:min(len(args[0]), limit)], quoted)
}
