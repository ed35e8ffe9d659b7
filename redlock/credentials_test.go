package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/internal/respfake"
	"github.com/quorumlock/quorumlock/quorum"
)

const secret = "s3cret/p?ss#w@rd:%41"

var guarded = respfake.Options{Users: map[string]respfake.User{
	"default": {Password: secret},
	"locker":  {Password: secret},
}}

// A node that refuses the credentials is said to, on the first call; and no
// password is.
//
// field-reports: 89
func TestRefusedCredentialsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		server   respfake.Options
		user     string
		password string
		want     string // "" if it is let in
	}{
		"right":                         {guarded, "", secret, ""},
		"right user":                    {guarded, "locker", secret, ""},
		"none needed":                   {respfake.Options{}, "", "", ""},
		"right, no HELLO":               {respfake.Options{NoHello: true, Users: guarded.Users}, "", secret, ""},
		"right user, no HELLO":          {respfake.Options{NoHello: true, Users: guarded.Users}, "locker", secret, ""},
		"wrong password":                {guarded, "", secret + "x", "WRONGPASS"},
		"wrong password for user":       {guarded, "locker", "x" + secret, "WRONGPASS"},
		"wrong user":                    {guarded, "stranger", secret, "WRONGPASS"},
		"no password":                   {guarded, "", "", "NOAUTH"},
		"no password for user":          {guarded, "locker", "", "NOAUTH"},
		"no password, Redis 6.2":        {respfake.Options{Version: "6.2.14", Users: guarded.Users}, "", "", "NOAUTH"},
		"wrong password, Redis 6.2":     {respfake.Options{Version: "6.2.14", Users: guarded.Users}, "", "x" + secret, "WRONGPASS"},
		"wrong password, no HELLO":      {respfake.Options{NoHello: true, Users: guarded.Users}, "", "x" + secret, "WRONGPASS"},
		"password where none is needed": {respfake.Options{NoHello: true}, "", secret, "without any password"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRespServer(t, test.server)
				o := respOptions(s, 0)
				o.Username, o.Password = test.user, test.password
				var d diary
				l := newLocker(t, []Node{Redis(o)}, Config{Trace: d.trace()})
				lease, err := l.TryAcquire(t.Context(), "k")
				if test.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					if !errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), test.want) {
						t.Fatalf("got %v, want ErrNoQuorum that names %s", err, test.want)
					}
					time.Sleep(time.Second)
					_, again := l.TryAcquire(t.Context(), "k")
					if again == nil || !strings.Contains(again.Error(), test.want) {
						t.Errorf("later: %v", again)
					}
					if n := asked(s, "set", "get", "eval", "evalsha"); n > 0 {
						t.Errorf("%d commands went to a node that had not let us in", n)
					}
					// Once a pause, each on a connection of its own that is gone.
					if n := s.Accepted(); n > 12 || s.Conns() > 1 {
						t.Errorf("%d connections in a second, %d at once", n, s.Conns())
					}
					if text := printed(err) + printed(again); test.password != "" && strings.Contains(text, test.password) {
						t.Errorf("the password is in:\n%s", text)
					}
				}
				l.Close(t.Context())
				synctest.Wait()
				if text := d.text(); test.password != "" && strings.Contains(text, test.password) {
					t.Errorf("the password is in what was traced:\n%s", text)
				}
				if s.Conns() != 0 {
					t.Errorf("%d connections after Close", s.Conns())
				}
			})
		})
	}
}

// Three of five nodes refuse the password.
//
// field-reports: 89
func TestMajorityThatRefusesThePasswordIsNamedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers []*respfake.Server
		var nodes []Node
		for i := range 5 {
			s := newRespServer(t, guarded)
			o := respOptions(s, i)
			o.Password = secret
			if i >= 2 {
				o.Password = "wrong-" + secret
			}
			servers, nodes = append(servers, s), append(nodes, Redis(o))
		}
		l := newLocker(t, nodes, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := l.TryAcquire(ctx, "k")
		if !errors.Is(err, ErrNoQuorum) || strings.Count(err.Error(), "WRONGPASS") != 3 {
			t.Errorf("the first attempt: %v", err)
		}
		_, err = l.Acquire(ctx, "k")
		var failure *AttemptError
		if !errors.As(err, &failure) || strings.Count(err.Error(), "WRONGPASS") != 3 || strings.Contains(printed(err), secret) {
			t.Fatalf("got %v", err)
		}
		// It backs off, by 125 ms on average.
		if failure.Attempts > 100 {
			t.Errorf("%d attempts in 5 s", failure.Attempts)
		}
		synctest.Wait()
		if left := leftOn(servers); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}

// Each node's own trouble is told, and the clean-up does not hide it.
//
// field-reports: 79
func TestErrorNamesEveryNodesTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 5, respfake.Options{})
		servers[1] = newRespServer(t, guarded)
		nodes[1] = Redis(respOptions(servers[1], 1))
		l := newLocker(t, nodes, Config{})
		synctest.Wait()
		servers[3].Do(0, func(tx *respfake.Tx) { tx.Set("k", "somebody-else", respfake.SetOptions{}) })
		servers[4].Refuse(true)
		servers[4].Cut()
		time.Sleep(2 * idlePing) // it has noticed
		servers[2].Hang()

		_, err := l.TryAcquire(t.Context(), "k")
		var failure *AttemptError
		if !errors.As(err, &failure) || !errors.Is(err, ErrNoQuorum) {
			t.Fatalf("got %v, want ErrNoQuorum", err)
		}
		for i, want := range []struct {
			vote quorum.Vote
			text string
		}{
			{quorum.Granted, ""}, {quorum.Unsent, "NOAUTH"}, {quorum.Unknown, "no answer"}, {quorum.Denied, ""}, {quorum.Unsent, "refused"},
		} {
			v := failure.Votes[i]
			if v.Node != nodes[i].String() || v.Vote != want.vote || (v.Err == nil) != (want.text == "") || v.Err != nil && !strings.Contains(v.Err.Error(), want.text) {
				t.Errorf("vote %d: %v, want %v %s", i+1, v, want.vote, want.text)
			}
			if v.Err != nil && !strings.Contains(err.Error(), v.Err.Error()) {
				t.Errorf("the error does not say what node %d does: %v", i+1, err)
			}
		}
		if strings.Contains(printed(err), "somebody-else") {
			t.Errorf("a token is in %v", err)
		}
	})
}

// Tokens prove ownership: they are in no error and no trace.
//
// field-reports: 79
func TestTokensAreNotPrinted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, nodes := respNodes(t, 3, respfake.Options{})
		var d, rivals diary
		l := newLocker(t, nodes, Config{TTL: time.Second, Trace: d.trace()})
		rival := newLocker(t, nodes, Config{TTL: time.Second, Trace: rivals.trace()})
		lease := acquire(t, l, "k")
		synctest.Wait()
		text := fmt.Sprintf("%v %+v %#v", lease.Token(), lease.Token(), lease.Token())
		_, err := rival.TryAcquire(t.Context(), "k")
		text += printed(err)
		seen, err := rival.Inspect(t.Context(), "k")
		text += fmt.Sprintf("%+v %#v %v", seen, seen, err)
		for _, s := range servers {
			s.Do(0, func(tx *respfake.Tx) { tx.Set("k", "the-token-of-somebody-else", respfake.SetOptions{}) })
		}
		text += printed(lease.Extend(t.Context(), time.Second)) + printed(lease.Release(t.Context()))
		text += d.text() + rivals.text()
		for _, token := range []string{string(lease.Token()), "the-token-of-somebody-else"} {
			if strings.Contains(text, token) {
				t.Errorf("%s is in:\n%s", token, text)
			}
			if digest := Token(token).Digest(); !strings.Contains(text, digest) {
				t.Errorf("the digest %s is not told: the test shows nothing", digest)
			}
		}
	})
}
