package quorum

import (
	"fmt"
	"testing"
)

func TestMajorityIsMoreThanHalf(t *testing.T) {
	want := map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 15: 8}
	for n, q := range want {
		if got := Majority(n); got != q {
			t.Errorf("Majority(%d) = %d, want %d", n, got, q)
		}
	}
	for n := 1; n <= 15; n++ {
		if q := Majority(n); 2*q <= n || 2*(q-1) > n {
			t.Errorf("Majority(%d) = %d: two quorums must meet, and no more than that", n, q)
		}
	}
}

func TestMajorityOfNobodyPanics(t *testing.T) {
	for _, n := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Majority(%d) returned", n)
				}
			}()
			Majority(n)
		}()
	}
}

// tallies calls f with every tally of n voters.
func tallies(n int, f func(Tally)) {
	for p := 0; p <= n; p++ {
		for g := 0; p+g <= n; g++ {
			for d := 0; p+g+d <= n; d++ {
				for u := 0; p+g+d+u <= n; u++ {
					f(Tally{Pending: p, Granted: g, Denied: d, Unknown: u, Unsent: n - p - g - d - u})
				}
			}
		}
	}
}

// reachable is the set of outcomes that votes still to come may lead to, found
// by trying them all rather than by arithmetic.
func reachable(t Tally, memo map[Tally]map[Outcome]bool) map[Outcome]bool {
	if r, ok := memo[t]; ok {
		return r
	}
	r := map[Outcome]bool{}
	if t.Pending == 0 {
		q := Majority(t.Voters())
		switch {
		case t.Granted >= q:
			r[Won] = true
		case t.Granted+t.Unknown+t.Unsent < q:
			r[Refused] = true
		default:
			r[Short] = true
		}
	} else {
		for _, v := range []Vote{Granted, Denied, Unknown, Unsent} {
			next := t
			next.Pending--
			*next.of(v)++
			for o := range reachable(next, memo) {
				r[o] = true
			}
		}
	}
	memo[t] = r
	return r
}

func TestDecideIsExactInEveryState(t *testing.T) {
	for n := 1; n <= 7; n++ {
		memo := map[Tally]map[Outcome]bool{}
		states := 0
		tallies(n, func(tally Tally) {
			states++
			can := reachable(tally, memo)
			got := Decide(tally)
			if len(can) > 1 {
				if got != Open {
					t.Errorf("%+v: decided %v, but votes to come may make it %v", tally, got, can)
				}
			} else if !can[got] {
				t.Errorf("%+v: got %v, want %v", tally, got, can)
			}
		})
		t.Logf("N=%d: %d states", n, states)
	}
}

func TestBallotAgreesWithDecideInEveryOrder(t *testing.T) {
	votes := []Vote{Granted, Denied, Unknown, Unsent}
	for n := 1; n <= 5; n++ {
		var walk func(b Ballot, cast int)
		walk = func(b Ballot, cast int) {
			if cast == n {
				if b.Outcome() == Open {
					t.Fatalf("all %d voted, still open: %+v", n, b.Tally())
				}
				return
			}
			for _, v := range votes {
				next := b
				next.votes = append([]Vote(nil), b.votes...)
				before := b.Outcome()
				got := next.Cast(cast, v)
				if before != Open && got != before {
					t.Fatalf("a vote turned %v into %v", before, got)
				}
				if got == Won && Decide(next.Tally()) != Won {
					t.Fatalf("won with %+v", next.Tally())
				}
				walk(next, cast+1)
			}
		}
		walk(NewBallot(n), 0)
	}
}

func TestLateVotesCountButTurnNothing(t *testing.T) {
	b := NewBallot(5)
	for i, v := range []Vote{Granted, Denied, Denied, Unknown} {
		b.Cast(i, v)
	}
	if got := b.Cast(4, Unsent); got != Short {
		t.Fatalf("outcome %v, want short", got)
	}
	if got := b.Cast(3, Granted); got != Short {
		t.Errorf("a late grant turned the outcome into %v", got)
	}
	if b.Vote(3) != Granted || b.Tally().Granted != 2 || b.Tally().Unknown != 0 {
		t.Errorf("the late grant is not counted: %v %+v", b.Vote(3), b.Tally())
	}
}

func TestVoterVotesOnce(t *testing.T) {
	for _, first := range []Vote{Granted, Denied, Unsent} {
		for _, second := range []Vote{Pending, Granted, Denied, Unknown, Unsent} {
			b := NewBallot(3)
			b.Cast(0, first)
			b.Cast(0, second)
			if b.Vote(0) != first {
				t.Errorf("%v then %v counts as %v", first, second, b.Vote(0))
			}
			if got := b.Tally().Voters(); got != 3 {
				t.Errorf("%v then %v: %d voters", first, second, got)
			}
		}
	}
	b := NewBallot(3)
	b.Cast(0, Unknown)
	b.Cast(0, Unsent)
	if b.Vote(0) != Unknown {
		t.Error("unsent replaced unknown: whoever was asked was asked")
	}
}

func Example() {
	b := NewBallot(5)
	b.Cast(0, Granted)
	b.Cast(1, Unsent) // known to be down
	b.Cast(2, Granted)
	fmt.Println(b.Outcome())
	fmt.Println(b.Cast(4, Granted))
	fmt.Println(b.Cast(3, Denied))
	// Output:
	// open
	// won
	// won
}

func BenchmarkBallot(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ballot := NewBallot(5)
		for i := range 5 {
			ballot.Cast(i, Granted)
		}
	}
}
