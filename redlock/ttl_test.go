package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Wherever a TTL can be given, one that nodes cannot keep is refused before anything
// is sent, and what is no whole number of milliseconds is rounded up. So no key is
// without an end, and none ends before its lease. Zero in a Config is the default.
//
// field-reports: 19, 110
func TestEveryTTLIsRefusedOrRoundedUp(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, ttl := range []time.Duration{0, -time.Second, -1, 1, 999 * time.Microsecond, 1500 * time.Microsecond, 60*time.Second + 1, 100 * year, 1<<63 - 1, -1 << 63} {
		for what, ask := range map[string]func(l *Locker, lease *Lease, nodes []Node) error{
			"Config.TTL": func(_ *Locker, _ *Lease, nodes []Node) error {
				if ttl == 0 {
					return ErrInvalid // is the default
				}
				_, err := New(nodes, Config{TTL: ttl})
				return err
			},
			"Config.MaxTTL": func(_ *Locker, _ *Lease, nodes []Node) error {
				if ttl == 0 || ttl > time.Minute && ttl < year {
					return ErrInvalid // the default, and one that is fine
				}
				_, err := New(nodes, Config{MaxTTL: ttl})
				return err
			},
			"WithTTL": func(l *Locker, _ *Lease, _ []Node) error { _, err := l.WithTTL(ttl); return err },
			"Extend":  func(_ *Locker, lease *Lease, _ []Node) error { return lease.Extend(t.Context(), ttl) },
		} {
			t.Run(what+" "+ttl.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mem, nodes := memNodes(3)
					l := newLocker(t, nodes, Config{TTL: 60 * time.Second, MaxTTL: 60 * time.Second})
					lease := acquire(t, l, "k")
					synctest.Wait()
					asked := mem[0].arrived()
					// 1.5 ms would be used up by the drift, and a minute is the most here.
					if err := ask(l, lease, nodes); !errors.Is(err, ErrInvalid) {
						t.Errorf("got %v, want ErrInvalid", err)
					}
					synctest.Wait()
					if mem[0].arrived() != asked {
						t.Error("something was sent")
					}
					for _, n := range mem {
						n.set(func(n *memNode) {
							if k := n.keys["k"]; k.token != lease.Token() || time.Until(k.until) != 60*time.Second {
								t.Errorf("%s keeps it for %v", n, time.Until(k.until))
							}
						})
					}
				})
			})
		}
	}
	for _, ttl := range []time.Duration{20*time.Millisecond + 1, 25*time.Millisecond + 500*time.Microsecond, 29999*time.Millisecond + 999999} {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(3)
			l := newLocker(t, nodes, Config{TTL: ttl})
			lease := acquire(t, l, "k")
			synctest.Wait()
			left := func() (left time.Duration) {
				mem[0].set(func(n *memNode) { left = time.Until(n.keys["k"].until) })
				return left
			}
			if got, want := left(), ttl.Truncate(time.Millisecond)+time.Millisecond; got != want {
				t.Errorf("%v: set for %v, want %v", ttl, got, want)
			}
			time.Sleep(5 * time.Millisecond)
			err := lease.Extend(t.Context(), ttl)
			synctest.Wait() // a majority is enough for Extend
			if err != nil || left() != ttl.Truncate(time.Millisecond)+time.Millisecond {
				t.Errorf("%v: %v, extended to %v", ttl, err, left())
			}
		})
	}
}
