package sim

import (
	"strings"
	"testing"
)

// What a plan says that holds, and does not, is seen.
func TestJudgeSeesWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"nodes' clocks leap": {`
			timely
			keeping
			at 10ms c1 try k
			at 20ms leap n1 by 2s
			at 20ms leap n2 by 2s
			at 30ms c2 try k`, "two hold k"},
		"nodes forget": {`
			timely
			keeping
			at 10ms c1 try k
			at 20ms flush n1
			at 20ms flush n2
			at 30ms c1 release k`, "1 nodes of 3 have it"},
		"nodes forget, and nobody looks before the end": {`
			timely
			keeping
			at 10ms c1 try k
			at 20ms flush n1
			at 20ms flush n2`, "1 nodes of 3 have it"},
		"nodes said to keep what they have restart without": {`
			timely
			keeping
			durable
			at 10ms c1 try k
			at 20ms for 10ms wipe n1
			at 20ms for 10ms wipe n2
			at 60ms c2 acquire k`, "two hold k"},
		"fences fall": {`
			keeping
			fenced
			at 5ms ahead c1 by 900ms
			at 10ms c1 try k
			at 20ms c1 release k
			at 30ms flush n1
			at 30ms flush n2
			at 30ms flush n3
			at 40ms c2 try k`, "fence"},
		"a clock runs away": {`
			timely
			keeping
			at 0s for 1h raced c1 rate -0.5
			at 10ms c1 try k
			at 1500ms c2 try k`, "two hold k"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(test.script)
			if err != nil {
				t.Fatal(err)
			}
			r := Run(t, p)
			if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("it says %q, and not %q\n%s", all, test.want, strings.Join(r.Story, "\n"))
			}
			// The same is nothing to complain of where it is allowed for.
			p.Timely, p.Keeping = false, false
			if r := Run(t, p); len(r.Violations) > 0 {
				t.Errorf("where nothing is promised: %q", r.Violations)
			}
		})
	}
}

// One script per fault: it happens, ends, and does nothing that is not promised.
func TestEveryFaultHappensAndEnds(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			p, err := Parse("fenced\nttl 211ms\nmaxttl 300ms\nacts 4\nthink 20ms\nlength 1s")
			if err != nil {
				t.Fatal(err)
			}
			p.Timely, p.Keeping, p.Durable = k.breaks != timing, k.breaks != memory, k.breaks != durable
			f := Fault{Kind: name, At: 15e6, For: 50e6, Node: -1, Client: -1}
			if k.target&aNode != 0 {
				f.Node = 1
			}
			if k.target&aClient != 0 {
				f.Client = 1
			}
			d := dice(1)
			if k.draw != nil {
				k.draw(&d, &p, &f)
			}
			p.Faults = []Fault{f}
			r := Run(t, p)
			if r.Faults[name] != 1 {
				t.Errorf("it has not happened: %v", r.Faults)
			}
			if len(r.Violations) > 0 {
				t.Errorf("%q", r.Violations)
			}
		})
	}
}
