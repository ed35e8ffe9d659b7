package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/fence"
)

// appended is an append of holder's lease with that number, under the fence 10
// times as large, unless the entry says another.
func appended(holder int, element string, called, returned time.Duration, o Outcome) Append {
	return Append{Entry: Entry{"k", fence.Token(10 * holder), element}, Holder: holder, Lease: 1, Called: called, Returned: returned, Outcome: o}
}

func TestBadLogsAreFound(t *testing.T) {
	a1 := appended(1, "a1", 1*ms, 2*ms, OK)
	a2 := appended(1, "a2", 3*ms, 4*ms, OK)
	b1 := appended(2, "b1", 5*ms, 6*ms, OK)
	late := appended(1, "late", 7*ms, 8*ms, Fail)
	lost := appended(1, "lost", 7*ms, 0, Unknown)
	early := appended(1, "early", 1, 9*ms, OK)
	other := a2
	other.Holder = 3
	nextLease := a2
	nextLease.Lease = 2
	elsewhere := a1
	elsewhere.Key = "other"
	for _, test := range []struct {
		name    string
		appends []Append
		log     []Entry
		want    []string
	}{
		{"an acknowledged one is missing", []Append{a1, a2, b1}, []Entry{a1.Entry, b1.Entry},
			[]string{`element "a2" of "k", fence 10: holder 1 was told at 4ms that it is there, and it is not`}},
		{"everything is missing", []Append{a1, b1}, nil,
			[]string{`"a1" of "k", fence 10: holder 1 was told`, `"b1" of "k", fence 20: holder 2 was told`}},
		{"it is in another list", []Append{a1}, []Entry{elsewhere.Entry},
			[]string{`"a1" of "other", fence 10: nobody has appended it`, `"a1" of "k", fence 10: holder 1 was told`}},
		{"a refused one is there", []Append{a1, late}, []Entry{a1.Entry, late.Entry},
			[]string{`"late" of "k", fence 10: holder 1 was told at 8ms that it is not there`}},
		{"one is there twice", []Append{a1, a2}, []Entry{a1.Entry, a2.Entry, a2.Entry},
			[]string{`"a2" of "k", fence 10: it is there twice`}},
		{"one comes from nowhere", []Append{a1}, []Entry{a1.Entry, {"k", 10, "x"}},
			[]string{`"x" of "k", fence 10: nobody has appended it`}},
		{"one is there under another fence", []Append{a1}, []Entry{{"k", 20, "a1"}},
			[]string{`"a1" of "k", fence 20: holder 1 appended it under fence 10`}},
		{"a fence goes back", []Append{a1, b1, a2}, []Entry{a1.Entry, b1.Entry, a2.Entry},
			[]string{`"a2" of "k", fence 10: it stands behind fence 20`}},
		{"a fence goes back twice", []Append{a1, b1, a2, lost}, []Entry{a1.Entry, b1.Entry, a2.Entry, lost.Entry},
			[]string{`"a2" of "k", fence 10: it stands behind fence 20`, `"lost" of "k", fence 10: it stands behind fence 20`}},
		{"an unknown one is there and came too late", []Append{b1, lost}, []Entry{b1.Entry, lost.Entry},
			[]string{`"lost" of "k", fence 10: it stands behind fence 20`}},
		{"two holders append under one fence", []Append{a1, other}, []Entry{a1.Entry, other.Entry},
			[]string{`"a2" of "k", fence 10: it is of lease 1 of holder 3, and the same fence was lease 1 of holder 1 before`}},
		{"two leases of one holder append under one fence", []Append{a1, nextLease}, []Entry{a1.Entry, nextLease.Entry},
			[]string{`it is of lease 2 of holder 1, and the same fence was lease 1 of holder 1 before`}},
		{"an acknowledged one stands behind one that was called later", []Append{a1, a2}, []Entry{a2.Entry, a1.Entry},
			[]string{`"a1" of "k", fence 10: it was acknowledged at 2ms and stands behind "a2", which was not called until 3ms`}},
		{"… also with another between that was called before both", []Append{a1, a2, early}, []Entry{a2.Entry, early.Entry, a1.Entry},
			[]string{`"a1" of "k", fence 10: it was acknowledged at 2ms and stands behind "a2", which was not called until 3ms`}},
		{"no fence at all", []Append{{Entry: Entry{"k", 0, "a1"}, Called: 1 * ms, Returned: 2 * ms, Outcome: OK}}, []Entry{{"k", 0, "a1"}},
			[]string{`that is no fence`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Run{Appends: test.appends, Log: test.log}.Judge()
			faults := v.Faults()
			if v.Clean() || len(faults) != len(test.want) || len(v.Misplaced) != len(test.want) || v.Appended != len(test.log) {
				t.Fatalf("%d appended, faults\n%s", v.Appended, strings.Join(faults, "\n"))
			}
			for i, want := range test.want {
				if !strings.Contains(faults[i], want) {
					t.Errorf("%s, want %s", faults[i], want)
				}
			}
		})
	}
}

func TestGoodLogsAreClean(t *testing.T) {
	a1 := appended(1, "a1", 1*ms, 2*ms, OK)
	a2 := appended(1, "a2", 1*ms, 9*ms, OK)
	b1 := appended(2, "b1", 5*ms, 6*ms, OK)
	late := appended(1, "late", 7*ms, 8*ms, Fail)
	lost := appended(1, "lost", 3*ms, 0, Unknown)
	elsewhere := appended(1, "a1", 1*ms, 2*ms, OK)
	elsewhere.Key = "other"
	for _, test := range []struct {
		name    string
		appends []Append
		log     []Entry
	}{
		{"nothing", nil, nil},
		{"two holders, one after the other", []Append{a1, a2, b1}, []Entry{a1.Entry, a2.Entry, b1.Entry}},
		{"one holder in two orders, called at the same time", []Append{a1, a2}, []Entry{a2.Entry, a1.Entry}},
		{"a late one was refused", []Append{b1, late}, []Entry{b1.Entry}},
		{"an unknown one is there", []Append{a1, lost}, []Entry{a1.Entry, lost.Entry}},
		{"an unknown one is there, long after", []Append{a1, a2, lost}, []Entry{a1.Entry, a2.Entry, lost.Entry}},
		{"an unknown one is not there", []Append{a1, lost}, []Entry{a1.Entry}},
		{"the same element and fence in two lists", []Append{a1, elsewhere}, []Entry{elsewhere.Entry, a1.Entry}},
		{"a larger fence in another list", []Append{elsewhere, b1}, []Entry{b1.Entry, elsewhere.Entry}},
	} {
		if v := (Run{Appends: test.appends, Log: test.log}).Judge(); !v.Clean() {
			t.Errorf("%s: %v", test.name, v.Faults())
		}
	}
}

func BenchmarkAudit(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("appends=%d", n), func(b *testing.B) {
			var r Run
			for i := range n {
				a := Append{Entry: Entry{fmt.Sprint("k", i%64), fence.Token(1 + i/640), fmt.Sprint(i)}, Lease: 1 + i/640, Outcome: OK}
				a.Called, a.Returned = time.Duration(2*i+1), time.Duration(2*i+2)
				r.Appends, r.Log = append(r.Appends, a), append(r.Log, a.Entry)
			}
			b.ReportAllocs()
			for b.Loop() {
				if v := r.Judge(); !v.Clean() {
					b.Fatal(v.Faults())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/append")
		})
	}
}
