package redlock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/clock"
)

// All locks from before a start are over MaxTTL later by the slowest clock, and a
// node that counts its uptime in whole seconds may be a second younger than it says.
func TestQuarantineIsLongEnough(t *testing.T) {
	for _, c := range []struct {
		maxTTL time.Duration
		drift  clock.Drift
		want   time.Duration
	}{
		{time.Millisecond, clock.Drift{}, 2 * time.Second},
		{time.Second, clock.Drift{}, 3 * time.Second},
		{10 * time.Second, clock.Drift{}, 12 * time.Second},
		{30 * time.Second, clock.Drift{}, 32 * time.Second},
		{time.Hour, clock.Drift{}, 3638 * time.Second},                                                     // 36.002 s are the drift
		{1500 * time.Millisecond, clock.Drift{Rate: 0.25, Slack: 125 * time.Millisecond}, 3 * time.Second}, // 2 s exactly
		{1501 * time.Millisecond, clock.Drift{Rate: 0.25, Slack: 125 * time.Millisecond}, 4 * time.Second},
		{10 * time.Second, clock.Drift{Rate: 0.5, Slack: time.Second}, 17 * time.Second},
		{10 * time.Second, clock.Drift{Rate: 0.5, Slack: time.Second + 1}, 18 * time.Second},
	} {
		if got := newVoter(Config{MaxTTL: c.maxTTL, Drift: c.drift}).need; got != c.want {
			t.Errorf("MaxTTL %v with %+v: %v, want %v", c.maxTTL, c.drift, got, c.want)
		}
		// With fences there must be time for clocks to overtake what is forgotten.
		if got := newVoter(Config{MaxTTL: c.maxTTL, Drift: c.drift, Fenced: true}).need; got != max(c.want, 5*time.Second) {
			t.Errorf("MaxTTL %v with %+v and fences: %v", c.maxTTL, c.drift, got)
		}
	}
}

// told is what a master says of itself.
func told(run, data string, uptime time.Duration) Peer {
	return Peer{ID: 1, RunID: run, ReplicationID: data, Uptime: uptime}
}

const month = 30 * 24 * time.Hour

// The times are the lane's own, and a quarantine takes 12 s.
func TestWhenANodesGrantsCount(t *testing.T) {
	type meeting struct {
		at time.Duration
		Peer
	}
	replica := Peer{ID: 1, RunID: "a", ReplicationID: "d", Uptime: month, Replica: true}
	member := Peer{ID: 1, RunID: "a", ReplicationID: "d", Uptime: month, ClusterNodes: 3}
	alone := Peer{ID: 1, RunID: "a", ReplicationID: "d", Uptime: month, ClusterNodes: 1}
	for _, c := range []struct {
		name string
		cfg  Config
		meet []meeting
		want time.Duration // grants count in rounds from here on
	}{
		{"long up", Config{}, []meeting{{5 * time.Second, told("a", "d", month)}}, 5*time.Second + 12*time.Second - month},
		{"up just long enough", Config{}, []meeting{{5 * time.Second, told("a", "d", 12*time.Second)}}, 5 * time.Second},
		{"a second less", Config{}, []meeting{{5 * time.Second, told("a", "d", 11*time.Second)}}, 6 * time.Second},
		{"just started", Config{}, []meeting{{5 * time.Second, told("a", "d", 0)}}, 17 * time.Second},
		{"wall clock stepped back since", Config{}, []meeting{{5 * time.Second, told("a", "d", -time.Minute)}}, 17 * time.Second},
		{"met again", Config{}, []meeting{
			{0, told("a", "d", 3*time.Second)}, {4 * time.Second, told("a", "d", 7*time.Second)},
		}, 9 * time.Second},
		{"met again, clock stepped ahead", Config{}, []meeting{
			{0, told("a", "d", 3*time.Second)}, {4 * time.Second, told("a", "d", 67*time.Second)},
		}, 9 * time.Second},
		{"met again, clock stepped back", Config{}, []meeting{
			{0, told("a", "d", 3*time.Second)}, {4 * time.Second, told("a", "d", -53*time.Second)},
		}, 9 * time.Second},
		{"restarted", Config{}, []meeting{{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)}}, 72 * time.Second},
		{"restarted, same data", Config{}, []meeting{{0, told("a", "d", month)}, {time.Minute, told("b", "d", 0)}}, 72 * time.Second},
		{"restarted, and says it is long up", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", month)},
		}, 72 * time.Second},
		{"restarted twice", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)}, {65 * time.Second, told("c", "f", 0)},
		}, 77 * time.Second},
		{"restarted, met again", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)}, {65 * time.Second, told("b", "e", month)},
		}, 72 * time.Second},
		{"restarted, as it was before", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)}, {65 * time.Second, told("a", "d", month)},
		}, 77 * time.Second},
		{"other data in the same process", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("a", "e", month)},
		}, 72 * time.Second},
		{"never another's data", Config{}, []meeting{
			{0, told("a", "", month)}, {time.Minute, told("a", "", month)},
		}, 12*time.Second - month},
		{"another's data for the first time", Config{}, []meeting{
			{0, told("a", "", month)}, {time.Minute, told("a", "e", month)},
		}, 72 * time.Second},
		{"that was long ago", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("a", "", month)},
		}, 12*time.Second - month},
		{"and another's again", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("a", "", month)}, {2 * time.Minute, told("a", "e", month)},
		}, 132 * time.Second},
		{"replica, then master", Config{}, []meeting{{0, replica}, {time.Minute, told("a", "e", month)}}, 72 * time.Second},
		{"… with the same data", Config{}, []meeting{{0, replica}, {time.Minute, told("a", "d", month)}}, 72 * time.Second},
		{"master, replica, master", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Second, replica}, {time.Minute, told("a", "d", month)},
		}, 72 * time.Second},
		{"former replica, met again", Config{}, []meeting{
			{0, replica}, {time.Minute, told("a", "e", month)}, {2 * time.Minute, told("a", "e", month)},
		}, 72 * time.Second},
		{"cluster of three, then of one", Config{}, []meeting{{0, member}, {time.Minute, alone}}, 72 * time.Second},
		{"cluster of one", Config{}, []meeting{{0, alone}}, 12*time.Second - month},

		{"durable, just started", Config{DurableNodes: true}, []meeting{{5 * time.Second, told("a", "d", 0)}}, 0},
		{"durable, restarted", Config{DurableNodes: true}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)},
		}, 0},
		{"durable, other data in the same process", Config{DurableNodes: true}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("a", "e", month)},
		}, 72 * time.Second},
		{"durable, restarted with other data and they are replaced then", Config{DurableNodes: true}, []meeting{
			{0, told("a", "d", month)}, {time.Minute, told("b", "e", 0)}, {2 * time.Minute, told("b", "f", month)},
		}, 132 * time.Second},
		{"durable, former replica", Config{DurableNodes: true}, []meeting{{0, replica}, {time.Minute, told("a", "e", month)}}, 72 * time.Second},
		{"durable, former replica that restarted", Config{DurableNodes: true}, []meeting{{0, replica}, {time.Minute, told("b", "e", 0)}}, 72 * time.Second},

		{"unidentified", Config{AllowUnidentified: true}, []meeting{{0, Peer{}}}, 0},
		{"unidentified for a while", Config{AllowUnidentified: true}, []meeting{
			{0, told("a", "d", month)}, {time.Second, Peer{}}, {time.Minute, told("a", "d", month)},
		}, 12*time.Second - month},
		{"… and restarted meanwhile", Config{AllowUnidentified: true}, []meeting{
			{0, told("a", "d", month)}, {time.Second, Peer{}}, {time.Minute, told("b", "d", month)},
		}, 72 * time.Second},
		{"unidentified while in quarantine", Config{AllowUnidentified: true}, []meeting{
			{0, told("a", "d", 0)}, {time.Second, Peer{}},
		}, 12 * time.Second},
		{"refused, then identified", Config{}, []meeting{{0, Peer{}}, {time.Minute, told("a", "d", month)}}, 72*time.Second - month},
		{"restarted, and refused for a while", Config{}, []meeting{
			{0, told("a", "d", month)}, {time.Second, Peer{}}, {time.Minute, told("b", "e", month)},
		}, 72 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.MaxTTL = 10 * time.Second
			v := newVoter(c.cfg)
			for _, m := range c.meet {
				if v.admit(m.Peer) == nil {
					v.meet(m.Peer, m.at)
				}
			}
			now := c.meet[len(c.meet)-1].at
			if why := v.quarantined(c.want, now); why != nil {
				t.Errorf("a round that begins at %v does not count: %v", c.want, why)
			}
			if c.want <= 0 {
				return
			}
			why := v.quarantined(c.want-1, now)
			if why == nil {
				t.Fatalf("a round that begins just before %v counts", c.want)
			}
			if left := max(c.want-now, time.Millisecond); why.For != left || why.MaxTTL != 10*time.Second {
				t.Errorf("%+v, want %v more", why, left)
			}
		})
	}
}

// That the time has come by when an answer lands is not enough: it must have come
// before the round began.
func TestQuarantineIsJudgedByTheRoundsBeginning(t *testing.T) {
	v := newVoter(Config{MaxTTL: 10 * time.Second})
	v.meet(told("a", "d", 0), 0)
	why := v.quarantined(12*time.Second-1, 13*time.Second)
	if why == nil {
		t.Fatal("the round began too early, and counts because its answer is late")
	}
	if why.For <= 0 {
		t.Errorf("in quarantine for %v more", why.For)
	}
}

func TestQuarantineSaysHowLongAndWhy(t *testing.T) {
	for want, c := range map[string]struct {
		meet []Peer
		at   time.Duration
	}{
		"quarantined for 9s more: restarted 3s ago, MaxTTL 10s":              {[]Peer{told("a", "d", 3*time.Second)}, 0},
		"quarantined for 12s more: restarted 1ms ago, MaxTTL 10s":            {[]Peer{told("a", "d", month), told("b", "e", 0)}, time.Millisecond},
		"quarantined for 500ms more: restarted 12s ago, MaxTTL 10s":          {[]Peer{told("a", "d", 0)}, 11500 * time.Millisecond},
		"quarantined for 12s more: had its data replaced 0s ago, MaxTTL 10s": {[]Peer{told("a", "d", month), told("a", "e", month)}, 0},
		"quarantined for 10s more: became a voter 2s ago, MaxTTL 10s":        {[]Peer{{RunID: "a", Replica: true}, told("a", "d", month)}, 2 * time.Second},
	} {
		v := newVoter(Config{MaxTTL: 10 * time.Second})
		for _, p := range c.meet {
			if v.admit(p) == nil {
				v.meet(p, 0)
			}
		}
		if why := v.quarantined(0, c.at); why == nil || why.Error() != want {
			t.Errorf("got %v, want %s", why, want)
		}
	}
}

func TestWhoIsNoVoter(t *testing.T) {
	for _, c := range []struct {
		name      string
		peer      Peer
		why       string // "" if it is one
		anonymous string // the same with AllowUnidentified
	}{
		{"master", told("a", "d", 0), "", ""},
		{"replica", Peer{RunID: "a", Replica: true}, "it is a replica", "it is a replica"},
		{"only member of a cluster", Peer{RunID: "a", ClusterNodes: 1}, "", ""},
		{"one of two", Peer{RunID: "a", ClusterNodes: 2}, "one of 2 nodes of a cluster", "one of 2 nodes of a cluster"},
		{"one of six", Peer{RunID: "a", ClusterNodes: 6}, "one of 6 nodes of a cluster", "one of 6 nodes of a cluster"},
		{"replica in a cluster", Peer{RunID: "a", Replica: true, ClusterNodes: 6}, "it is a replica", "it is a replica"},
		{"says nothing", Peer{ID: 7}, "INFO", ""},
		{"says nothing of its cluster", Peer{RunID: "a", ClusterNodes: -1}, "CLUSTER INFO", ""},
		{"says nothing but that it is a replica", Peer{Replica: true}, "INFO", "it is a replica"},
	} {
		for allowed, want := range map[bool]string{false: c.why, true: c.anonymous} {
			v := newVoter(Config{MaxTTL: time.Second, AllowUnidentified: allowed})
			err := v.admit(c.peer)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s, AllowUnidentified %v: %v", c.name, allowed, err)
			case want != "" && (!errors.Is(err, errNoVoter) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s, AllowUnidentified %v: got %v, want %q", c.name, allowed, err, want)
			case !allowed && want != "" && c.anonymous == "" && !strings.Contains(err.Error(), "Config.AllowUnidentified"):
				t.Errorf("%s: %v: it does not say what to do", c.name, err)
			}
		}
	}
}

// Each server process has one vote, whatever its addresses are and however often
// they are connected to.
func TestAProcessHasOneVote(t *testing.T) {
	type claim struct {
		node int
		run  string
		want int // the node that is it; the one that asks if it may
	}
	for name, claims := range map[string][]claim{
		"three processes":              {{0, "a", 0}, {1, "b", 1}, {2, "c", 2}},
		"connected anew":               {{0, "a", 0}, {1, "b", 1}, {0, "a", 0}, {1, "b", 1}},
		"a second address":             {{0, "a", 0}, {1, "a", 0}, {1, "a", 0}, {2, "c", 2}},
		"… that is connected to first": {{1, "a", 1}, {0, "a", 1}, {2, "c", 2}, {0, "a", 1}},
		"three addresses":              {{0, "a", 0}, {1, "a", 0}, {2, "a", 0}},
		"restarted":                    {{0, "a", 0}, {0, "b", 0}, {1, "a", 1}},
		"the first restarted, and the second comes first": {{0, "a", 0}, {1, "a", 0}, {0, "b", 0}, {1, "b", 0}, {1, "a", 1}},
		// Each is refused once what the other has; that it gives its own up lets the
		// other have it.
		"changed places": {{0, "a", 0}, {1, "b", 1}, {0, "b", 1}, {1, "a", 1}, {0, "b", 0}},
		"went round":     {{0, "a", 0}, {1, "b", 1}, {2, "c", 2}, {0, "b", 1}, {1, "c", 2}, {2, "a", 2}, {1, "c", 1}, {0, "b", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			r := roll{run: make([]string, 3)}
			for i, c := range claims {
				other, ok := r.claim(c.node, c.run)
				if ok != (c.want == c.node) || other != c.want {
					t.Errorf("claim %d, node %d as %s: %d %v, want %d", i+1, c.node, c.run, other, ok, c.want)
				}
				seen := map[string]bool{}
				for _, run := range r.run {
					if run != "" && seen[run] {
						t.Fatalf("after claim %d two nodes are %s: %q", i+1, run, r.run)
					}
					seen[run] = true
				}
			}
		})
	}
}
