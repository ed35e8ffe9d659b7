package respfake

import "testing"

// No 6.2 is at hand to compare with; the texts are those of its source.
func TestOlderServerRefusesWhatCameWithSeven(t *testing.T) {
	bubble(t, Options{Version: "6.2.14", Users: map[string]User{"default": {Deny: []string{"client|kill"}}}}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.want(t, "SET k v NX GET PX 1000", "-ERR syntax error")
		w.want(t, "SET k v NX PX 1000", "+OK")
		w.want(t, "SET k v XX GET", `$"v"`)
		w.want(t, "INFO server memory", "-ERR syntax error")
		w.want(t, "PEXPIRE k 10 NX", "-ERR wrong number of arguments for 'pexpire' command")
		w.want(t, "FOO a b", "-ERR unknown command `FOO`, with args beginning with: `a`, `b`, ")
		w.want(t, "CLIENT SETINFO lib-name x", "-ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP.")
		w.want(t, "CLIENT KILL ID 5", "-NOPERM this user has no permissions to run the 'client' command or its subcommand")
		if got := infoFields(t, w)["redis_version"]; got != "6.2.14" {
			t.Errorf("version %s", got)
		}
	})
}

// These texts are those of a Redis 8.0.
func TestNewerServerKnowsSetInfo(t *testing.T) {
	bubble(t, Options{Version: "8.0.2", Users: map[string]User{"default": {Password: "sec"}, "bob": {Deny: []string{"INFO"}}}}, func(t *testing.T, s *Server) {
		w := connect(t, s)
		w.want(t, "HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> "+
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
		w.want(t, "AUTH bob any", "+OK")
		w.want(t, "CLIENT SETINFO lib-name x", "+OK")
		w.want(t, "CLIENT SETINFO foo x", "-ERR Unrecognized option 'foo'")
		w.want(t, "INFO", "-NOPERM User bob has no permissions to run the 'info' command")
	})
}

func TestVersionMustBeOne(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New(Options{Version: "seven"})
}
