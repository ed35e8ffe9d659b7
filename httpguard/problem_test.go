package httpguard

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A problem's type is a link, and leads to an explanation.
func TestEveryProblemIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`\bname: "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
			if !strings.Contains(string(page), "\n### "+match[1]+"\n") {
				t.Errorf("docs/http.md has no heading %s", match[1])
			}
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(string(page), -1) {
		if !found[match[1]] {
			t.Errorf("docs/http.md explains %s, which nothing answers", match[1])
		}
	}
	if len(found) < 10 {
		t.Errorf("only %d problems found", len(found))
	}
}

func TestSecondsAreRoundedUpAndAtLeastOne(t *testing.T) {
	for d, want := range map[time.Duration]int{
		1: 1, time.Second: 1, time.Second + 1: 2, 3200 * time.Millisecond: 4, time.Hour: 3600, math.MaxInt64: int(math.MaxInt64 / time.Second),
	} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
}
