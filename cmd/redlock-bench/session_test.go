package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/history"
	"github.com/quorumlock/quorumlock/internal/redisproc"
	"github.com/quorumlock/quorumlock/redlock"
)

// testSession is a session of few cycles whose text can be read.
func testSession(t *testing.T, nodes string, args ...string) (session, *bytes.Buffer) {
	t.Helper()
	s, err := parseRun(append([]string{"-nodes", nodes, "-c", "8", "-n", "80", "-keys", "2", "-hold", "0.2ms", "-ttl", "1m"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	quiet := progress{pace: func() <-chan time.Time { return nil }}
	return session{settings: s, text: &text, progress: quiet, makeLocker: patientLocker}, &text
}

// patientLocker is the quorum lock with all the time that a busy machine may
// take.
func patientLocker(c *cluster, cfg redlock.Config) (locker, error) {
	cfg.NodeTimeout = cfg.TTL / 4
	return newQuorumLocker(c, cfg)
}

func wantClean(t *testing.T, r report, err error, text string, cycles int64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Check.Clean || r.Check.Asked != len(r.Nodes) || len(r.Phases) != 2 {
		t.Fatalf("not clean:\n%s", text)
	}
	for _, p := range r.Phases {
		if p.OK != cycles {
			t.Errorf("%s: %d of %d cycles succeeded, %v failed: %v", p.Name, p.OK, cycles, p.Failed, p.Errors)
		}
	}
	if int64(r.Check.Holds) != 2*cycles {
		t.Errorf("%d holds were judged, want %d", r.Check.Holds, 2*cycles)
	}
	if !strings.HasSuffix(text, "verdict: clean\n") {
		t.Errorf("the text ends otherwise:\n%s", text)
	}
}

func TestRunOnEmbeddedServersIsClean(t *testing.T) {
	for _, nodes := range []string{"embedded:1", "embedded:3", "embedded:5"} {
		s, text := testSession(t, nodes)
		r, err := s.run(t.Context())
		wantClean(t, r, err, text.String(), 80)
		if got := strings.Count(text.String(), embeddedNote); got != 2 {
			t.Errorf("figures of embedded servers are labelled %d times:\n%s", got, text)
		}
	}
}

func TestRunOnSpawnedServersIsClean(t *testing.T) {
	redisproc.Require(t)
	s, text := testSession(t, "spawn:3")
	r, err := s.run(t.Context())
	wantClean(t, r, err, text.String(), 80)
	if strings.Contains(text.String(), "embedded") {
		t.Errorf("real servers are called embedded:\n%s", text)
	}
	for _, n := range r.Nodes {
		if !strings.HasPrefix(n.Server, "redis ") && !strings.HasPrefix(n.Server, "valkey ") {
			t.Errorf("server %q", n.Server)
		}
	}
}

// A run on servers of somebody else's takes a password, repeats it nowhere, and
// leaves what is theirs.
func TestRunOnRemoteServersIsClean(t *testing.T) {
	redisproc.Require(t)
	const password = "hunter2 and: more/@"
	var urls []string
	for range 3 {
		p, err := redisproc.Start(t.Context(), redisproc.Options{Args: []string{"--requirepass", password}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		u := "redis://default:hunter2%20and%3A%20more%2F%40@" + p.Addr() + "/1"
		urls = append(urls, u)
		client, err := plainClient(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Set(t.Context(), "theirs", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	s, text := testSession(t, strings.Join(urls, ","))
	s.durable = true
	r, err := s.run(t.Context())
	wantClean(t, r, err, text.String(), 80)
	var object bytes.Buffer
	if err := writeJSON(&object, r); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), object.String()} {
		if strings.Contains(out, "hunter2") || !strings.Contains(out, "redis://default:xxxxx@127.0.0.1:") {
			t.Errorf("nodes are not shown as they should be:\n%s", out)
		}
	}
	for i, n := range (&cluster{urls: urls}).look(t.Context(), "") {
		if n.err != nil || len(n.keys) != 1 || n.keys[0] != "theirs" {
			t.Errorf("node %d has %q (%v)", i, n.keys, n.err)
		}
	}
}

// field-reports: 108
func TestTwoHoldersAtOnceFailTheRun(t *testing.T) {
	s, text := testSession(t, "embedded:1", "-keys", "1", "-hold", "5ms")
	s.makeLocker = func(*cluster, redlock.Config) (locker, error) { return &fakeLocker{broken: true}, nil }
	r, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Check.Clean || r.Check.Overlaps == 0 || status(r.Check, nil, false) != exitFailed {
		t.Errorf("check %+v", r.Check)
	}
	for _, want := range []string{"FAULT: two holders at once: holder ", `"shared:0"`, "verdict: FAILED\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestKeyLeftOnANodeFailsTheRun(t *testing.T) {
	s, text := testSession(t, "embedded:3")
	s.makeLocker = func(c *cluster, cfg redlock.Config) (locker, error) {
		return &fakeLocker{left: func(ctx context.Context, key string) {
			client, err := plainClient(c.urls[1])
			if err == nil {
				err = client.Set(ctx, cfg.KeyPrefix+key, "token", time.Minute).Err()
				client.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}}, nil
	}
	r, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Check.Clean || r.Check.Left == 0 || r.Check.Overlaps != 0 || status(r.Check, nil, false) != exitFailed {
		t.Errorf("check %+v", r.Check)
	}
	if want := "was left on " + r.Nodes[1].URL; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
}

// An interrupted run releases what it holds, and is judged.
func TestInterruptedRunIsJudged(t *testing.T) {
	s, text := testSession(t, "embedded:3")
	s.cycles, s.length = 0, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.makeLocker = func(c *cluster, cfg redlock.Config) (locker, error) {
		l, err := patientLocker(c, cfg)
		return &interrupting{locker: l, cancel: cancel}, err
	}
	r, err := s.run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || !r.Check.Clean || len(r.Phases) != 1 || r.Phases[0].OK == 0 || r.Check.Holds == 0 {
		t.Errorf("report %+v", r)
	}
	if got := status(r.Check, nil, true); got != exitInterrupted {
		t.Errorf("exit status %d", got)
	}
	if !strings.HasSuffix(text.String(), "verdict: clean, interrupted\n") {
		t.Errorf("the text ends otherwise:\n%s", text)
	}
}

// interrupting is a locker in whose run somebody presses Ctrl-C.
type interrupting struct {
	locker
	cancel func()
	n      atomic.Int64
}

func (i *interrupting) TryAcquire(ctx context.Context, key string) (lease, error) {
	if i.n.Add(1) == 100 {
		i.cancel()
	}
	return i.locker.TryAcquire(ctx, key)
}

func TestForeignKeysAreNotTouched(t *testing.T) {
	err := usable([]survey{{url: "redis://a"}, {url: "redis://b", keys: []string{"redlock-bench:{1}:k"}}})
	if err == nil || !strings.Contains(err.Error(), `redis://b has key "redlock-bench:{1}:k", which this run did not make`) {
		t.Errorf("error %v", err)
	}
}

func TestRunNeedsAMajorityOfNodes(t *testing.T) {
	down := survey{url: "redis://c", err: errors.New("connection refused")}
	if err := usable([]survey{{}, {}, down}); err != nil {
		t.Errorf("two of three: %v", err)
	}
	err := usable([]survey{{}, down, down})
	if err == nil || !strings.Contains(err.Error(), "1 of 3 nodes answer, and 2 are needed\nredis://c: connection refused") {
		t.Errorf("one of three: %v", err)
	}
}

// A node that is down at the end is named. The run stays clean as long as a
// majority could be searched.
func TestVerdictOnNodesThatCannotBeAsked(t *testing.T) {
	down := survey{url: "redis://c", err: errors.New("connection refused")}
	if c := decide(history.Run{}, false, []survey{{}, {}, down}, nil); !c.Clean || c.Asked != 2 || len(c.NotAsked) != 1 {
		t.Errorf("one of three down: %+v", c)
	}
	if c := decide(history.Run{}, false, []survey{{}, down, down}, nil); c.Clean || c.Asked != 1 || len(c.Faults) != 1 {
		t.Errorf("two of three down: %+v", c)
	}
	if c := decide(history.Run{}, false, []survey{{}, {keys: []string{"k"}, err: errors.New("cut off")}, {}}, nil); c.Clean || c.Left != 1 {
		t.Errorf("a key left on a node that was then cut off: %+v", c)
	}
	if c := decide(history.Run{}, false, []survey{{}}, errors.New("slow")); !c.Clean || c.Close != "slow" {
		t.Errorf("closing complained: %+v", c)
	}
}

func TestServerNames(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n":                         "redis 7.0.15",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n":                 "valkey 9.1.2",
		"server_name:redis\r\nredis_version:8.0.2\r\n":                                          "redis 8.0.2",
		"redis_version:7.2.0\r\nserver_name:miniredis\r\nminiredis_version:v2.40.0\r\nrun_id:1": "miniredis v2.40.0",
	} {
		if got := serverName(info); got != want {
			t.Errorf("%q: %q, want %q", info, got, want)
		}
	}
}

// field-reports: 108
func TestJSONParses(t *testing.T) {
	s, _ := testSession(t, "embedded:1")
	r, err := s.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var back report
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&back); err != nil {
		t.Fatal(err)
	}
	if back.Phases[0].OK != r.Phases[0].OK || back.Check.Holds != r.Check.Holds || !back.Started.Equal(r.Started) {
		t.Errorf("read back %+v, want %+v", back, r)
	}
}
