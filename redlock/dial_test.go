package redlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
)

// A URL whose password was not encoded falls apart in the wrong places. No part
// of it is repeated.
func TestDialErrorsShowNothingOfTheURL(t *testing.T) {
	const half, other = "hunter2", "swordfish"
	for _, url := range []string{
		"redis://u:" + half + "/" + other + "@h:6379",
		"redis://u:1/" + other + "@h:6379",
		"redis://u:1/" + other + "/" + half + "@h:6379/0",
		"redis://u:" + half + "?" + other + "@h:6379",
		"redis://u:1?" + other + "@h:6379",
		"redis://u:1?" + other + "=" + half + "@h:6379",
		"redis://u:" + half + "#" + other + "@h:6379",
		"redis://u:12#" + other + "@h:6379",
		"redis://u:12#@" + other,
		"redis://" + other + ":6379/0#",
		"redis:u:" + half + "@" + other,
		"redis:u:" + half + "@" + other + ":6379/0",
		"redis:/0",
		"redis:",
		"redis:///0",
		"redis:///0?client_name=" + half,
		"redis://:6379/0",
		"redis://u:" + half + "@",
		"redis://u:" + half + "@:6379/0",
		"redis:///u:" + half + "@" + other,
		"rediss://u:" + half + "@/0",
		"rediss:u:" + half + "@" + other,
		"redis://u:" + half + "%" + other + "@h:6379",
		"redis://u:" + half + "%zz" + other + "@h:6379",
		"redis://u:" + half + " " + other + "@h:6379",
		"redis://u:" + half + "\n" + other + "@h:6379",
		"redis://u:" + half + "[" + other + "@h:6379",
		"redis://u:" + half + "\\" + other + "@h:6379",
		"redis://u:" + half + "@" + other + "@h:port",
		"redis://u:" + half + "@h:6379/" + other,
		"redis://u:" + half + "@h:6379/0/" + other,
		"redis://u:" + half + "@h:6379?db=" + other,
		"redis://u:" + half + "@h:6379?" + other,
		"redis://u:" + half + "@h:6379?pool_size=" + other,
		"redis://u:" + half + "@h:6379?dial_timeout=" + other,
		"redis://u:" + half + "@h:6379?pool_fifo=" + other,
		"redis://u:" + half + "@h:6379?dial_timeout=1&dial_timeout=" + other,
		"redis://u:" + half + "@[::1",
		"rediss://u:" + half + "@h:6379?skip_verify=" + other,
		"unix://u:" + half + "/" + other + "@/run/redis.sock",
		"unix://u:12/" + other + "@/run/redis.sock",
		"unix://" + half + "/redis.sock",
		"unix:" + half + "/redis.sock",
		"unix:///run/" + half + "#" + other + ".sock",
		"unix://u:" + half + "@",
		"unix://u:" + half + "@/run/redis.sock?" + other,
		"http://u:" + half + "@h",
		half + "://u@h",
		half + ":" + other + "@h:6379",
		"u:" + half + "@h:6379",
		":" + half + "@h:6379",
		half + "@h:6379",
		half + "%zz",
		"//u:" + half + "@h",
		"",
	} {
		for i, urls := range [][]string{{url}, {"redis://127.0.0.1:1", url}} {
			l, err := Dial(urls, Config{})
			if err == nil {
				l.Close(t.Context())
				t.Errorf("%q: it was dialled", url)
				continue
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("URL %d of %d", i+1, len(urls))) {
				t.Errorf("%q: got %v, want ErrInvalid and which URL", url, err)
			}
			if text := printed(err); strings.Contains(text, half) || strings.Contains(text, other) {
				t.Errorf("%q is repeated in %s", url, text)
			}
		}
	}
}

// What a URL may leave out has the same meaning on every machine.
func TestDialFillsInPortAndDatabase(t *testing.T) {
	for url, want := range map[string]string{
		"redis://127.0.0.1":                  "127.0.0.1:6379",
		"redis://127.0.0.1:":                 "127.0.0.1:6379",
		"redis://127.0.0.1:7001/":            "127.0.0.1:7001",
		"redis://localhost":                  "localhost:6379",
		"redis://u:p%23w@127.0.0.1:7001/3":   "127.0.0.1:7001",
		"redis://u:@127.0.0.1?db=3":          "127.0.0.1:6379",
		"REDIS://127.0.0.1":                  "127.0.0.1:6379",
		"rediss://[::1]":                     "[::1]:6379",
		"unix:///nowhere/redis.sock":         "/nowhere/redis.sock",
		"unix:/nowhere/redis.sock":           "/nowhere/redis.sock",
		"unix://u:p@/nowhere/r%23.sock?db=1": "/nowhere/r#.sock",
	} {
		l, err := Dial([]string{url}, Config{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := l.lanes[0].node.String(); got != want {
			t.Errorf("%s is %s, want %s", url, got, want)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestDialReadsEncodedPasswords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRespServer(t, guarded)
		encoded := "s3cret%2Fp%3Fss%23w%40rd%3A%2541"
		for _, url := range []string{"redis://:" + encoded + "@127.0.0.1:7001", "redis://locker:" + encoded + "@127.0.0.1:7001/3"} {
			o, err := redis.ParseURL(url)
			if err != nil {
				t.Fatal(err)
			}
			o.Dialer = s.Dialer()
			l := newLocker(t, []Node{Redis(o)}, Config{})
			cycle(t, l, "k")
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
