package rival

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// Each is what it is labelled as: it holds the key on as many nodes as it says,
// keeps others away, and leaves nothing behind.
func TestEveryLockLocks(t *testing.T) {
	redisproc.Require(t)
	for _, l := range All {
		t.Run(l.Name, func(t *testing.T) {
			var site Site
			for range 3 {
				s, err := redisproc.Start(t.Context(), redisproc.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				site.URLs = append(site.URLs, "redis://"+s.Addr())
			}
			site.Prefix, site.Fresh = "test:", true
			mine, theirs := open(t, l, site), open(t, l, site)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			lease, err := mine.Acquire(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if on := holders(t, site.URLs); l.Single && !slices.Equal(on, []int{0}) || !l.Single && len(on) < 2 {
				t.Errorf("the key is on nodes %v", on)
			}
			short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			defer stop()
			if _, err := theirs.Acquire(short, "k"); err == nil {
				t.Error("two hold it at once")
			}
			if err := lease.Release(ctx); err != nil {
				t.Error(err)
			}
			again, err := theirs.Acquire(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Release(ctx); err != nil {
				t.Error(err)
			}
			if _, renews := lease.(Kept); renews != l.Renews {
				t.Errorf("it renews: %v, and says %v", renews, l.Renews)
			}
		})
	}
}

// holders are the nodes that have any key.
func holders(t *testing.T, urls []string) (on []int) {
	t.Helper()
	for i, u := range urls {
		opts, err := redis.ParseURL(u)
		if err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(opts)
		defer c.Close()
		n, err := c.DBSize(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			on = append(on, i)
		}
	}
	return on
}

func open(t *testing.T, l Lock, s Site) Locker {
	t.Helper()
	locker, err := l.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locker.Close(context.Background()) })
	return locker
}

func TestEveryLockSaysWhatItIs(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range All {
		if l.Name == "" || l.Title == "" || l.Setup == "" || len(l.Does) == 0 || len(l.DoesNot) == 0 || seen[l.Name] {
			t.Errorf("%+v", l)
		}
		seen[l.Name] = true
		if l.Single != strings.Contains(l.Title, "one node") {
			t.Errorf("%s: its title does not say that it uses one node, or does and it does not", l.Title)
		}
		if got, known := Named(l.Name); !known || got.Title != l.Title {
			t.Errorf("%s is not found by its name", l.Name)
		}
	}
	if _, known := Named("none"); known {
		t.Error("there is one called none")
	}
}
