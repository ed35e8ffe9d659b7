package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/trial"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// compared makes a small comparison, its children being this program.
func compared(t *testing.T, args ...string) (c comparison, stdout, stderr string) {
	t.Helper()
	t.Setenv(mainEnv, "1")
	file := filepath.Join(t.TempDir(), "c.json")
	stdout, stderr, status := outcome(append([]string{"compare", "-reps", "1", "-d", "100ms", "-json", file}, args...)...)
	object, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(object, &c) != nil || status != exitClean {
		t.Fatalf("exit status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	return c, stdout, stderr
}

func TestComparisonOnEmbeddedServers(t *testing.T) {
	c, stdout, stderr := compared(t, "-nodes", "embedded:3", "-modes", "limit,uncontended,contended,alive", "-with", "quorumlock,redsync", "-c", "4", "-leases", "20", "-quick")
	want := map[string]int{trial.Limit: 3, trial.Uncontended: 2, trial.Contended: 2, trial.Alive: 1}
	for _, m := range c.Taken {
		// In a tenth of a second on a busy machine some do nothing.
		if m.Error != "" || m.Figures.Cycles == 0 && m.Who == "quorumlock" || m.Figures.Left == nil || *m.Figures.Left != 0 || m.Figures.Overlaps != 0 {
			t.Errorf("%s, %s: %s %+v", m.Scene, m.Who, m.Error, m.Figures)
		}
		for mode := range want {
			if strings.HasPrefix(m.Scene, mode) {
				want[mode]--
			}
		}
	}
	for mode, missing := range want {
		if missing != 0 {
			t.Errorf("%s: %d are missing", mode, missing)
		}
	}
	if len(c.Aims) != 0 {
		t.Errorf("embedded servers are compared with aims: %+v", c.Aims)
	}
	for _, part := range []string{embeddedNote, "miniredis", "github.com/go-redsync/redsync/v4 v4.18.1", "Uncontended: cost of a cycle", "Others used "} {
		if !strings.Contains(stdout, part) {
			t.Errorf("the text has no %q:\n%s", part, stdout)
		}
	}
	if !strings.Contains(stderr, "  1 of 8, ") || !strings.Contains(stderr, "  8 of 8, ") {
		t.Errorf("the progress does not count:\n%s", stderr)
	}
}

func TestComparisonHarmsItsServers(t *testing.T) {
	redisproc.Require(t)
	page := filepath.Join(t.TempDir(), "c.html")
	document := filepath.Join(t.TempDir(), "c.md")
	if err := os.WriteFile(document, []byte(markerFrom+"\n"+markerTo+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, stdout, _ := compared(t, "-nodes", "spawn:3", "-modes", "fault,rtt", "-with", "quorumlock,redsync", "-c", "64", "-html", page, "-write", document)
	faults := 0
	for _, m := range c.Taken {
		if m.Error != "" {
			t.Errorf("%s, %s: %s", m.Scene, m.Who, m.Error)
			continue
		}
		if m.Figures.Fault == nil {
			// A round trip there and one back take as long as the way that was added.
			if m.Figures.Acquire == nil || m.Figures.Acquire.P50 < 1900 {
				t.Errorf("%s, %s: no way was added: %+v", m.Scene, m.Who, m.Figures.Acquire)
			}
			continue
		}
		faults++
		if x := m.Figures.Fault; len(x.Timeline) < 3 || x.EndedS <= x.BeganS {
			t.Errorf("%s, %s: %+v", m.Scene, m.Who, x)
		}
	}
	if faults != 4 {
		t.Errorf("%d faults, want one killed and one stopped for each of two:\n%s", faults, stdout)
	}
	checkPage(t, page)
	text, err := os.ReadFile(document)
	if err != nil || !bytes.Contains(text, []byte("### Through a fault")) || !bytes.Contains(text, []byte("Measured on ")) {
		t.Errorf("%v\n%s", err, text)
	}
}

var elsewhere = regexp.MustCompile(`(?i)<script|<link|<img|<iframe|\bsrc=|\bhref=|url\(|@import|https?://`)

// checkPage sees that a page needs nothing from elsewhere and that its tags match.
func checkPage(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.ReplaceAll(string(text), `xmlns="http://www.w3.org/2000/svg"`, "")
	if found := elsewhere.FindString(without); found != "" {
		t.Errorf("the page has %q", found)
	}
	if n := strings.Count(without, "<svg"); n < 5 {
		t.Errorf("%d plots", n)
	}
	d := xml.NewDecoder(strings.NewReader(without))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMeasurementsAreInterleavedAndInAnotherOrderEachTime(t *testing.T) {
	s := twoReps(t)
	s.modes = []string{trial.Uncontended}
	s.nodes = nodeSet{kind: kindEmbedded, count: 1}
	var order []string
	c := contest{compareSettings: s, say: io.Discard, measure: func(_ context.Context, task trial.Task, _ trial.Do) (trial.Figures, error) {
		order = append(order, task.Rival)
		if len(task.URLs) != 1 || task.Prefix == "" || !task.Fresh || task.Workers != 64 || task.Helper != os.Getpid() {
			t.Errorf("%+v", task)
		}
		if task.Rival == "redsync" {
			return trial.Figures{}, errors.New("it fell over")
		}
		return trial.Figures{Seconds: 1, Rate: 5}, nil
	}}
	all := c.run(t.Context())
	if got := strings.Join(order, " "); got != "quorumlock redsync redislock redsync redislock quorumlock" {
		t.Errorf("%s", got)
	}
	if len(all) != 6 || all[1].Error != "it fell over" || all[1].Figures != nil || all[0].Figures.Rate != 5 {
		t.Errorf("%+v", all)
	}
}

func TestInterruptEndsAComparisonWithWhatThereIs(t *testing.T) {
	s := twoReps(t)
	s.modes = []string{trial.Uncontended}
	s.nodes = nodeSet{kind: kindEmbedded, count: 1}
	ctx, cancel := context.WithCancel(t.Context())
	c := contest{compareSettings: s, say: io.Discard}
	done := 0
	c.measure = func(context.Context, trial.Task, trial.Do) (trial.Figures, error) {
		if done++; done == 3 {
			cancel()
			return trial.Figures{}, ctx.Err()
		}
		return trial.Figures{Seconds: 1, Rate: 5}, nil
	}
	r, err := c.report(ctx)
	if err != nil || !r.Interrupted || len(r.Taken) != 2 || len(r.Scenes) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestHowLongItWillTake(t *testing.T) {
	if got := remaining(0, 10, 0); got != "beginning" {
		t.Errorf("%q", got)
	}
	if got := remaining(5, 10, 20*time.Second); got != "about 20s left" {
		t.Errorf("%q", got)
	}
}

// field-reports: 108
func TestTwoHoldersAtOnceFailTheComparison(t *testing.T) {
	broken := taken{Scene: "contended lockers=8", Figures: &trial.Figures{Overlaps: 2}}
	for _, test := range []struct {
		c    comparison
		want int
	}{
		{comparison{Taken: measurements{{Figures: &trial.Figures{}}, {Error: "gone"}}}, exitClean},
		{comparison{Interrupted: true}, exitInterrupted},
		{comparison{Taken: measurements{{Error: "gone"}}}, exitFailed},
		{comparison{Taken: measurements{broken}}, exitFailed},
		{comparison{Interrupted: true, Taken: measurements{broken, broken}}, exitFailed},
	} {
		if got := test.c.status(); got != test.want {
			t.Errorf("%+v: %d, want %d", test.c, got, test.want)
		}
		var b bytes.Buffer
		test.c.text(&b)
		if said := strings.Contains(b.String(), "TWO HELD A KEY AT ONCE"); said != (test.c.overlaps() > 0) {
			t.Errorf("it says so: %v\n%s", said, b.String())
		}
	}
}

func TestServersOfOthersAreNotTakenForOthers(t *testing.T) {
	c := comparison{Settings: comparisonSettings{Nodes: kindSpawn}, Machine: machine{CPUs: 2}}
	if got := c.load(); !strings.Contains(got, "not known") {
		t.Errorf("nothing was measured: %q", got)
	}
	for _, cores := range []float64{0.1, 0.7, 0.3} {
		c.Taken = append(c.Taken, taken{Figures: &trial.Figures{Others: &trial.Others{Cores: cores}}})
	}
	if got := c.load(); !strings.HasPrefix(got, "Others used 0.30 of 2 processors while it measured (median; 0.10 to 0.70)") {
		t.Errorf("%q", got)
	}
	c.Settings.Nodes = kindRemote
	if got := c.load(); !strings.HasPrefix(got, "Others, the servers included if they are here, used 0.30") {
		t.Errorf("%q", got)
	}
}
