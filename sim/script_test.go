package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	update = flag.Bool("sim.update", false, "write what scripts in testdata say")
	script = flag.String("sim.script", "", "a script to run instead of those in testdata")
)

// TestScripts plays the scripts in testdata. Each file has the commands, a line
// "---", and what becomes of them.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if *script != "" {
		files = []string{*script}
	}
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			commands, want, _ := strings.Cut(string(text), "---\n")
			p, err := Parse(commands)
			if err != nil {
				t.Fatal(err)
			}
			p.Verbose = *verbose
			r := Run(t, p)
			if *verbose {
				t.Log(strings.Join(r.Log, "\n"))
			}
			story := r.Story
			if p.Script == nil { // what the clients do is the seed's affair
				story = append(r.Violations, fmt.Sprintf("%d grants, %d violations", r.Grants, len(r.Violations)))
			}
			got := strings.Join(story, "\n") + "\n"
			switch {
			case *script != "":
				t.Log(got)
				for _, v := range r.Violations {
					t.Error(v)
				}
			case *update:
				if err := os.WriteFile(file, []byte(commands+"---\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			case got != want:
				t.Errorf("it says\n%s\nand not\n%s", got, want)
			}
		})
	}
}

// A plan in words is the plan.
func TestPlanReadsItself(t *testing.T) {
	for seed := range uint64(300) {
		p := Draw(seed)
		q, err := Parse(p.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		if p.String() != q.String() {
			t.Fatalf("%s\nand back:\n%s", p, q)
		}
	}
	for _, wrong := range []string{
		"nodes", "nodes x", "nodes 0", "clients -1", "gremlins 3", "at 3", "at 3ms", "at 3ms stop n9", "at 3ms fall n1",
		"at 3ms stop c1", "at 3ms stop", "at 3ms stop n*", "at 3ms stop n1 c1", "at 3ms pause n1", "at 3ms pause c*", "at 3ms c1 eat k", "at 3ms c1 try", "ttl 3",
	} {
		if _, err := Parse(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
