package respfake

import "strings"

// User is someone who may connect.
type User struct {
	// Password, or "" when every password will do.
	Password string
	// Deny names commands the user may not run, as "info" or "client|kill"; "client"
	// means all of its subcommands. AUTH and HELLO are never denied.
	Deny []string
}

const defaultUser = "default"

var (
	errNoAuth    = failure("NOAUTH Authentication required.")
	errWrongPass = failure("WRONGPASS invalid username-password pair or user is disabled.")
	errNoPass    = failure("ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?")
	errBadName = failure("ERR Client names cannot contain spaces, newlines or special characters.")
)

func (s *Server) user(name string) (User, bool) {
	u, ok := s.opt.Users[name]
	return u, ok || name == defaultUser
}

// firstUser is who a new connection speaks as: the default user if it has no
// password, else nobody.
func (s *Server) firstUser() *User {
	if u, _ := s.user(defaultUser); u.Password == "" {
		return &u
	}
	return nil
}

// login changes the session's user, or leaves it alone and returns an error.
func (x *call) login(name, password string) error {
	u, ok := x.srv.user(name)
	if !ok || u.Password != "" && u.Password != password {
		return errWrongPass
	}
	x.ses.user, x.ses.login = &u, name
	return nil
}

// forbidden is the error for a command the session may not run, or nil.
func (x *call) forbidden() error {
	switch {
	case x.cmd.free:
		return nil
	case x.ses.user == nil:
		return errNoAuth
	case !matches(x.name, x.ses.user.Deny):
		return nil
	case x.srv.since(7, 2):
		login := x.ses.login
		if login == "" {
			login = defaultUser
		}
		return failf("NOPERM User %s has no permissions to run the '%s' command", login, x.name)
	case x.srv.since(7, 0):
		return failf("NOPERM this user has no permissions to run the '%s' command", x.name)
	}
	container, _, _ := strings.Cut(x.name, "|")
	return failf("NOPERM this user has no permissions to run the '%s' command or its subcommand", container)
}

func auth(x *call) any {
	name, password := defaultUser, x.args[0]
	if len(x.args) > 2 {
		return errSyntax
	}
	if len(x.args) == 2 {
		name, password = x.args[0], x.args[1]
	} else if u, _ := x.srv.user(defaultUser); u.Password == "" {
		return errNoPass
	}
	if err := x.login(name, password); err != nil {
		return err
	}
	return statusOK
}

func hello(x *call) any {
	proto, args := x.ses.proto, x.args
	if len(args) > 0 {
		v, err := parseInt(args[0])
		switch {
		case err != nil:
			return failure("ERR Protocol version is not an integer or out of range")
		case v != 2 && v != 3:
			return failure("NOPROTO unsupported protocol version")
		}
		proto, args = int(v), args[1:]
	}
	var user, password, name *string
	for len(args) > 0 {
		switch option := strings.ToUpper(args[0]); {
		case option == "AUTH" && len(args) > 2:
			user, password, args = &args[1], &args[2], args[3:]
		case option == "SETNAME" && len(args) > 1:
			if !validName(args[1]) {
				return errBadName
			}
			name, args = &args[1], args[2:]
		default:
			return failf("ERR Syntax error in HELLO option '%s'", args[0])
		}
	}
	if user != nil {
		if err := x.login(*user, *password); err != nil {
			return err
		}
	}
	if x.ses.user == nil {
		return x.errHelloFirst()
	}
	if name != nil {
		x.ses.name = *name
	}
	x.ses.proto = proto
	role := x.srv.info.field("role", x.now)
	if role == "slave" {
		role = "replica"
	}
	return mapping{
		"server", "redis",
		"version", x.srv.info.field("redis_version", x.now),
		"proto", proto,
		"id", x.ses.id,
		"mode", x.srv.info.field("redis_mode", x.now),
		"role", role,
		"modules", []any{},
	}
}

func (x *call) errHelloFirst() error {
	usage := "HELLO AUTH"
	if x.srv.since(7, 2) {
		usage = "HELLO <proto> AUTH"
	}
	return failf("NOAUTH HELLO must be called with the client already authenticated, otherwise the "+
		"%s <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time", usage)
}

// validName says whether a client may be called this.
func validName(name string) bool {
	for _, c := range []byte(name) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}
