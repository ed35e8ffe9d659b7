package redlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// arranged is a flight with the end of its first half.
type arranged struct {
	calls []*call
	half  int
}

// fly cuts a queue into flights and arranges each, as a lane does.
func fly(queue []*call) (flights []arranged) {
	var c cutter
	for len(queue) > 0 {
		c.reset(nil)
		n := 0
		for n < len(queue) && n < maxFlight && c.fits(queue[n].op) {
			n++
		}
		flights = append(flights, arranged{c.arrange(nil, queue[:n]), c.half})
		queue = queue[n:]
	}
	return flights
}

func TestFlightsKeepAKeysOrder(t *testing.T) {
	kinds := map[byte]OpKind{'A': OpAcquire, 'S': OpStamp, 'E': OpExtend, 'I': OpInspect, 'R': OpRelease}
	for _, c := range []struct{ queue, want string }{
		{"Ra Ab Ac Rb", "Ab Ac Ra Rb"},
		{"Ra Aa", "Ra / Aa"},               // the release comes first
		{"Aa Ra", "Aa Ra"},                 // an attempt and its undoing share a flight
		{"Aa Ra Aa", "Aa Ra | Aa"},         // the next attempt does not
		{"Ra Aa Ra", "Ra / Aa Ra"},         // unless it was queued for a lease before
		{"Ra Aa Ra Aa", "Ra / Aa Ra | Aa"}, //
		{"Aa Aa", "Aa | Aa"},               // one of two at most may win
		{"Ra Aa Aa", "Ra / Aa | Aa"},       //
		{"Ra Ra", "Ra | Ra"},               // whose token?
		{"Ra Ea", "Ra | Ea"},               //
		{"Ra Ia", "Ra | Ia"},               // a look after the release sees it
		{"Ra Sa", "Ra | Sa"},               //
		{"Ra Aa Ea", "Ra / Aa Ea"},         //
		{"Sa Ab Rb Ea", "Ab Sa Ea Rb"},     //
		{"Ea Ra Ab Ib", "Ab Ea Ib Ra"},     //
		{"Ra Ab Aa Ac", "Ab Ra / Aa Ac"},   // nothing overtakes what has to wait
		{"Ra Rb Ab Rc Aa", "Ra Rb / Ab Aa Rc"},
		{"Ra Aa Rb Ab", "Ra / Aa Rb | Ab"}, // there is no third half
		{"Ra Rb Rc Ad Aa", "Ad Ra Rb Rc / Aa"},
	} {
		var queue []*call
		for _, name := range names(c.queue) {
			queue = append(queue, &call{op: &Op{Kind: kinds[name[0]], Key: name[1:]}})
		}
		got := ""
		for i, flight := range fly(queue) {
			if i > 0 {
				got += " |"
			}
			for j, c := range flight.calls {
				if j > 0 && j == flight.half {
					got += " /"
				}
				got += " " + string("ASEIR"[c.op.Kind]) + c.op.Key
			}
		}
		if got != " "+c.want {
			t.Errorf("%q flies as %q, want %q", c.queue, got[1:], c.want)
		}
	}
}

func names(s string) (all []string) {
	for i := 0; i < len(s); i += 3 {
		all = append(all, s[i:i+2])
	}
	return all
}

// For each key, releases are seen in their place among all of its operations,
// acquires among acquires and releases, and nothing is lost.
func TestFlightsKeepEveryKeysOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var queue []*call
		for i := range 1 + rng.IntN(300) {
			queue = append(queue, &call{node: int32(i), op: &Op{
				Kind: OpKind(rng.IntN(5)), Key: fmt.Sprint(rng.IntN(1 + rng.IntN(50))),
			}})
		}
		var sent []*call
		for _, flight := range fly(slices.Clone(queue)) {
			if n := len(flight.calls); n > maxFlight || n == 0 {
				t.Fatalf("a flight of %d", n)
			}
			sent = append(sent, flight.calls...)
		}
		if len(sent) != len(queue) {
			t.Fatalf("%d of %d sent", len(sent), len(queue))
		}
		at := make([]int, len(queue))
		for i, c := range sent {
			at[c.node] = i
		}
		for i, a := range queue {
			for _, b := range queue[i+1:] {
				matters := a.op.Kind == OpRelease || b.op.Kind == OpRelease || a.op.Kind == OpAcquire && b.op.Kind == OpAcquire
				if a.op.Key == b.op.Key && matters && at[a.node] > at[b.node] {
					t.Fatalf("%v of %s was overtaken by %v", a.op.Kind, a.op.Key, b.op.Kind)
				}
			}
		}
	}
}

func BenchmarkFlight(b *testing.B) {
	var queue []*call
	for i := range maxFlight {
		queue = append(queue, &call{op: &Op{Kind: OpKind(3 * (i % 2)), Key: fmt.Sprint(i)}})
	}
	var c cutter
	var flight []*call
	b.ReportAllocs()
	for b.Loop() {
		c.reset(nil)
		for _, q := range queue {
			c.fits(q.op)
		}
		flight = c.arrange(flight[:0], queue)
	}
}
