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
