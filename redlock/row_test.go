package redlock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/clock"
	"github.com/quorumlock/quorumlock/quorum"
)

// A process whose goroutines never stop wanting a key leaves it to others in
// between, though no answer ever tells it of them.
func TestABusyProcessLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := memNodes(5)
		busy, other := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		for range 4 {
			working.Go(func() {
				for ctx.Err() == nil {
					if lease, err := busy.Acquire(ctx, "k"); err == nil {
						time.Sleep(100 * time.Millisecond)
						lease.Release(context.WithoutCancel(ctx))
					}
				}
			})
		}
		for range 3 {
			inTime, stop := context.WithTimeout(t.Context(), time.Minute)
			lease, err := other.Acquire(inTime, "k")
			stop()
			if err != nil {
				t.Error(err)
				break
			}
			time.Sleep(100 * time.Millisecond)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		working.Wait()
	})
}

// A process that knows of no rival leaves the key free now and then, and one who comes
// finds it before the row would end by itself. That is chance, but not three times.
func TestARivalIsMetInAGap(t *testing.T) {
	late := 0
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			mem, nodes := memNodes(5)
			for i, n := range mem {
				n.set(func(n *memNode) { n.lag = time.Millisecond })
				nodes[i] = gathering{nodes[i]}
			}
			busy, other := newLocker(t, nodes, Config{}), newLocker(t, nodes, Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var working sync.WaitGroup
			for range 4 {
				working.Go(func() {
					for ctx.Err() == nil {
						if lease, err := busy.Acquire(ctx, "k"); err == nil {
							time.Sleep(time.Millisecond)
							lease.Release(context.WithoutCancel(ctx))
						}
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			start := time.Now()
			lease := wait(t, other)
			if time.Since(start) > quietRow*3/4 {
				late++
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			cancel()
			working.Wait()
		})
	}
	if late == 3 {
		t.Error("others had to wait until the row ended")
	}
}

// Where others are known to want the key, a row is as long as the line was when it
// began.
func TestARowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewSkewed(1)
		won := func(attempts int) *Lease { return &Lease{attempts: attempts, won: clk.Now()} }
		var r row
		if r.over(clk.Now()) {
			t.Error("over before it began")
		}
		r = r.next(won(1), 5)
		time.Sleep(quietRow - time.Nanosecond)
		if r.last = clk.Now(); r.over(clk.Now()) {
			t.Error("a row without rivals is over too soon")
		}
		time.Sleep(time.Nanosecond)
		if !r.over(clk.Now()) {
			t.Error("a row without rivals is not over")
		}
		time.Sleep(quietRow)
		if r.over(clk.Now()) {
			t.Error("others have had a second, and shall go first")
		}
		for waiting, want := range map[int]int{0: 1, 3: 4, 100: longestRow} {
			r = r.next(won(2), waiting)
			length := 1
			for ; !r.over(clk.Now()) && length < 2*longestRow; length++ {
				r = r.next(won(1), 100)
			}
			if length != want {
				t.Errorf("with %d in line a row is %d long, want %d", waiting, length, want)
			}
		}
		// Nobody comes any more: after some rows there are no rivals.
		rows := 0
		for ; r.limit > 0 && rows < 100; rows++ {
			for !r.over(clk.Now()) {
				r = r.next(won(1), 0)
			}
			r = r.next(won(1), 0)
		}
		if rows != enough+1 {
			t.Errorf("rivals were waited for in %d rows, want %d", rows, enough+1)
		}
	})
}

// Lines remember rivals of keys that nobody here wants at the moment, but not of any
// number of keys.
func TestALineRemembersRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewSkewed(1)
		n := line{spots: map[string]*spot{}, rows: map[string]row{}}
		cycle := func(key string, attempts int, votes ...quorum.Vote) {
			if err := n.enter(t.Context(), nil, key, clk.Now()); err != nil {
				t.Fatal(err)
			}
			r := newRound(5, Op{}, clk.Now())
			for i, vote := range votes {
				r.answer(i, &Reply{Vote: vote}, clk.Now())
			}
			lease := &Lease{attempts: attempts, won: clk.Now(), span: time.Second, acquire: r}
			n.leave(key, lease)
			n.free(key, lease, clk.Now())
		}
		cycle("quiet", 1, quorum.Granted, quorum.Granted, quorum.Granted, quorum.Unknown)
		cycle("wanted", 2)
		cycle("met", 1, quorum.Granted, quorum.Denied, quorum.Granted, quorum.Granted)
		if len(n.spots) != 0 || len(n.rows) != 2 || n.rows["met"].limit == 0 {
			t.Fatalf("%d lines and %d rows are kept, want those with rivals", len(n.spots), len(n.rows))
		}
		if err := n.enter(t.Context(), nil, "wanted", clk.Now()); err != nil || !n.yields("wanted", clk) {
			t.Errorf("%v: rivals are forgotten at once", err)
		}
		n.leave("wanted", nil)
		for i := range 10 * maxRows {
			cycle(fmt.Sprint(i), 2)
		}
		if len(n.rows) > maxRows {
			t.Errorf("%d rows are kept, want %d at most", len(n.rows), maxRows)
		}
	})
}
