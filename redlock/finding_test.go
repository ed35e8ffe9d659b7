package redlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSetOfNodesIsJudged(t *testing.T) {
	for n, want := range map[int][]string{
		1: {"note : one node is a lock on that node alone"},
		2: {"note : with two nodes, both are needed"},
		3: nil,
		4: {"note : 4 nodes bear the loss of no more than 3 do"},
		5: nil,
		6: {"note : 6 nodes bear the loss of no more than 5 do"},
	} {
		got := judge(goodNodes(n), usual)
		wantFindings(t, got, want)
		if got.Voters != n || got.Quorum != n/2+1 || !got.QuorumMayVote {
			t.Errorf("%d nodes: %+v", n, got)
		}
	}
}

// That nodes could be called durable is said if all are, and nobody says so.
func TestDurableNodesAreNoticed(t *testing.T) {
	for _, test := range []struct {
		change func(a []answer, r *rules)
		want   bool
	}{
		{func([]answer, *rules) {}, true},
		{func(_ []answer, r *rules) { r.durable = true }, false},
		{func(a []answer, _ *rules) { a[2].facts.Persistence.AppendFsync = "everysec" }, false},
		{func(a []answer, _ *rules) { a[2].facts.Persistence.AppendFsync = "" }, false},
		{func(a []answer, _ *rules) { a[2].facts = nil }, false},
	} {
		a, r := goodNodes(3), usual
		test.change(a, &r)
		report := judge(a, r)
		got := slices.ContainsFunc(report.Findings, func(f Finding) bool { return fmt.Sprintf("%s %s: %s", f.Severity, f.Node, f.Text) == quiet })
		if got != test.want {
			t.Errorf("%+v", report.Findings)
		}
	}
}

// A clock is compared with the middle of the others, so that one that is wrong
// does not make the others so.
func TestClockIsComparedWithTheMiddleOfTheOthers(t *testing.T) {
	for _, test := range []struct{ clocks, want []float64 }{
		{[]float64{0}, []float64{0}},
		{[]float64{0, 7}, []float64{-7, 7}},
		{[]float64{0, 0, 7}, []float64{0, 0, 7}},
		{[]float64{0, 7, 7}, []float64{-7, 0, 0}},
		{[]float64{0, 1, 2, 9}, []float64{-2, -1, 1, 8}},
		{[]float64{5, 0, 0, 0, 0}, []float64{5, 0, 0, 0, 0}},
		{[]float64{0, 0, 0, 0, -900, 900}, []float64{0, 0, 0, 0, -900, 900}},
	} {
		var clocks []ClockFacts
		for _, ahead := range test.clocks {
			clocks = append(clocks, ClockFacts{AheadMS: ahead, WithinMS: 0.25})
		}
		for i, want := range test.want {
			if got := against(clocks, i); got.AheadMS != want || got.WithinMS != 0.5 {
				t.Errorf("%v: clock %d is %+v, want %v", test.clocks, i, got, want)
			}
		}
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	a := goodNodes(3)
	a[1].facts.UptimeS = 3
	a[1].facts.Refused = []string{"client|kill"}
	a[2].facts, a[2].err = nil, errors.New("gone")
	report := judge(a, usual)
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	for i := range report.Nodes {
		if f := report.Nodes[i].Facts; f != nil {
			f.RunID = "" // is not told whole
		}
	}
	if !reflect.DeepEqual(*report, back) {
		t.Errorf("%s\ncomes back as %+v", text, back)
	}
	durable := usual
	durable.durable = true
	if text, _ := json.Marshal(judge(goodNodes(3), durable)); !strings.Contains(string(text), `"findings":[]`) {
		t.Errorf("no findings are not an empty list: %s", text)
	}
}
