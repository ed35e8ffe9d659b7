package history

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// say makes events, one after the other, from words: client.lease op [outcome]
// [until=…] [fence=…] [e=…] at a millisecond, on key "k".
func say(t *testing.T, script string) (events []Event) {
	t.Helper()
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		e := Event{Key: "k"}
		var at int
		if _, err := fmt.Sscanf(strings.Join(words[:3], " "), "%d %d.%d %s", &at, &e.Client, &e.Lease, &e.Op); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.At = time.Duration(at) * ms
		for _, word := range words[3:] {
			name, number, is := strings.Cut(word, "=")
			switch {
			case !is:
				e.Outcome = Outcome(word)
			case name == "e":
				e.Element = number
			case name == "key":
				e.Key = number
			case name == "fence":
				fmt.Sscan(number, &e.Fence)
			case name == "until":
				fmt.Sscan(number, &at)
				e.Until = time.Duration(at) * ms
			}
		}
		if err := e.check(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

func TestHoldsComeFromEvents(t *testing.T) {
	for _, test := range []struct {
		name, script string
		want         []Hold
	}{
		{"nothing", ``, nil},
		{"acquired and released", `
			1 3.1 acquire
			2 3.1 acquire ok until=20 fence=7
			4 3.1 release
			5 3.1 release ok`,
			[]Hold{{Key: "k", Holder: 3, Fence: 7, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms, Released: 4 * ms}}},
		{"an acquire that failed", `
			1 3.1 acquire
			2 3.1 acquire fail`, nil},
		{"an acquire of unknown outcome", `
			1 3.1 acquire
			2 3.1 acquire unknown`, nil},
		{"an acquire that never returned", `
			1 3.1 acquire`, nil},
		{"a client that vanished", `
			1 3.1 acquire
			2 3.1 acquire ok until=20`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms}}},
		{"a release of unknown outcome ends the hold when it was called", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			4 3.1 release
			9 3.1 release unknown`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms, Released: 4 * ms}}},
		{"released twice", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			6 3.1 release
			4 3.1 release`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms, Released: 4 * ms}}},
		{"extended", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			4 3.1 extend
			5 3.1 extend ok until=30`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 30 * ms}}},
		{"extended more than once, and the call not recorded", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			5 3.1 extend ok until=30
			6 3.1 extend ok until=50
			7 3.1 extend ok until=40`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 50 * ms}}},
		{"extended in vain", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			5 3.1 extend fail
			6 3.1 extend unknown
			7 3.1 extend`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms}}},
		{"told lost, also twice", `
			1 3.1 acquire
			2 3.1 acquire ok until=20
			8 3.1 lost
			7 3.1 lost
			9 3.1 release
			10 3.1 release fail`,
			[]Hold{{Key: "k", Holder: 3, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms, Lost: 7 * ms, Released: 9 * ms}}},
		{"several clients, leases and keys", `
			1 3.1 acquire
			2 3.1 acquire ok until=20 fence=1
			2 4.1 acquire
			3 3.1 release
			4 4.1 acquire ok until=30 fence=2
			4 3.2 acquire key=other
			5 3.2 acquire ok until=40 key=other fence=9
			5 4.1 release
			6 3.2 release key=other`,
			[]Hold{
				{Key: "k", Holder: 3, Fence: 1, Called: 1 * ms, Acquired: 2 * ms, Until: 20 * ms, Released: 3 * ms},
				{Key: "k", Holder: 4, Fence: 2, Called: 2 * ms, Acquired: 4 * ms, Until: 30 * ms, Released: 5 * ms},
				{Key: "other", Holder: 3, Fence: 9, Called: 4 * ms, Acquired: 5 * ms, Until: 40 * ms, Released: 6 * ms},
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			events := say(t, test.script)
			run, err := Recorded(events)
			if err != nil || !reflect.DeepEqual(run.Holds, test.want) {
				t.Errorf("%+v, %v; want %+v", run.Holds, err, test.want)
			}
			// In any order: the records of several clients are one after the other.
			slices.SortStableFunc(events, func(a, b Event) int { return b.Client - a.Client })
			slices.Reverse(events)
			run, err = Recorded(events)
			slices.SortFunc(run.Holds, byBeginning)
			slices.SortFunc(test.want, byBeginning)
			if err != nil || !reflect.DeepEqual(run.Holds, test.want) {
				t.Errorf("in another order: %+v, %v; want %+v", run.Holds, err, test.want)
			}
		})
	}
}

func TestAppendsComeFromEvents(t *testing.T) {
	run, err := Recorded(say(t, `
		1 3.1 acquire
		2 3.1 acquire ok until=20 fence=7
		3 3.1 append e=a
		4 3.1 append ok e=a
		5 3.1 append e=b
		6 3.1 append fail e=b
		7 3.1 append e=c
		8 3.1 append unknown e=c
		9 3.1 append e=d`))
	if err != nil {
		t.Fatal(err)
	}
	appended := func(element string, called, returned time.Duration, o Outcome) Append {
		return Append{Entry: Entry{"k", 7, element}, Holder: 3, Lease: 1, Called: called, Returned: returned, Outcome: o}
	}
	want := []Append{
		appended("a", 3*ms, 4*ms, OK), appended("b", 5*ms, 6*ms, Fail), appended("c", 7*ms, 8*ms, Unknown), appended("d", 9*ms, 0, Unknown),
	}
	if !reflect.DeepEqual(run.Appends, want) {
		t.Errorf("%+v, want %+v", run.Appends, want)
	}
}

func TestRecordsThatContradictThemselvesAreErrors(t *testing.T) {
	got := "1 3.1 acquire\n2 3.1 acquire ok until=20 fence=7\n"
	for _, test := range []struct{ script, want string }{
		{"1 3.1 acquire\n2 3.1 acquire", "acquire by client 3 for lease 1 at 2ms: it was called before"},
		{"2 3.1 acquire ok until=20", "it returned and was never called"},
		{"1 4.1 acquire\n1 3.2 acquire\n2 3.1 acquire fail", "it returned and was never called"},
		{got + "3 3.1 acquire fail", "it returned twice"},
		{"1 3.1 acquire\n2 3.1 acquire ok until=20 key=other", `it was called for "k" and returned for "other"`},
		{"4 3.1 release", "release by client 3 for lease 1 at 4ms: there was no such lease"},
		{got + "4 3.2 release", "there was no such lease"},
		{got + "4 4.1 lost", "there was no such lease"},
		{"1 3.1 acquire\n2 3.1 acquire fail\n4 3.1 extend ok until=9", "there was no such lease"},
		{"1 3.1 acquire\n2 3.1 acquire unknown\n4 3.1 append e=a", "there was no such lease"},
		{got + "4 3.1 release key=other", `it is for "other" and the lease on "k"`},
		{got + "4 3.1 append e=a\n5 3.1 append e=a", `"a" was appended before`},
		{got + "4 3.1 append ok e=a", `"a" returned and was never called`},
		{got + "1 4.1 acquire\n2 4.1 acquire ok until=9\n4 3.1 append e=a\n5 4.1 append ok e=a", `"a" returned and was never called`},
		{got + "4 3.1 append e=a\n5 3.1 append ok e=a\n6 3.1 append ok e=a", `"a" returned twice`},
		{got + "4 3.1 append e=a\n3 3.1 append ok e=a", `"a" returned before it was called`},
	} {
		run, err := Recorded(say(t, test.script))
		if err == nil || !strings.Contains(err.Error(), test.want) || run.Holds != nil {
			t.Errorf("%q: %v, want %s", test.script, err, test.want)
		}
	}
}

func TestEventsThatCannotBeMakeNoRun(t *testing.T) {
	for _, e := range []Event{
		{At: 0, Lease: 1, Op: OpAcquire, Key: "k"},
		{At: 1, Lease: 0, Op: OpAcquire, Key: "k"},
		{At: 1, Lease: 1, Op: "renew", Key: "k"},
	} {
		if run, err := Recorded([]Event{everything[0], e}); err == nil || run.Holds != nil {
			t.Errorf("%+v: %+v", e, run)
		}
	}
}

func TestWhatWasRecordedIsJudged(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"an extension was good for longer than the first validity", `
			1 1.1 acquire
			2 1.1 acquire ok until=20
			9 1.1 extend ok until=40
			20 2.1 acquire
			30 2.1 acquire ok until=50`,
			`two holders at once: holder 1 had "k" from 2ms to 40ms (validity over), and holder 2 got it at 30ms, 10ms too early`},
		{"the first vanished and was still valid", `
			1 1.1 acquire
			2 1.1 acquire ok until=20
			3 2.1 acquire
			19 2.1 acquire ok until=50`,
			`two holders at once: holder 1 had "k" from 2ms to 20ms (validity over), and holder 2 got it at 19ms, 1ms too early`},
		{"an unknown release is one", `
			1 1.1 acquire
			2 1.1 acquire ok until=20
			3 1.1 release
			3 2.1 acquire
			4 2.1 acquire ok until=50
			5 1.1 release unknown`, ``},
		{"nobody relies on an unknown acquire", `
			1 1.1 acquire
			2 1.1 acquire unknown
			3 2.1 acquire
			4 2.1 acquire ok until=50`, ``},
		{"a return before its call", `
			5 1.1 acquire
			2 1.1 acquire ok until=20`,
			`holder 1 had "k" from 2ms to 20ms (validity over): it was acquired before that was asked for`},
		{"a fence went back", `
			1 1.1 acquire
			2 1.1 acquire ok until=20 fence=8
			3 1.1 release
			4 2.1 acquire
			5 2.1 acquire ok until=20 fence=7`,
			`a fence went back: holder 1 got "k" with 8 at 2ms, and holder 2, who asked at 4ms, got 7 at 5ms`},
	} {
		run, err := Recorded(say(t, test.script))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := strings.Join(run.Judge().Faults(), "\n"); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}
