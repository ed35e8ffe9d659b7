package main

import (
	"strings"
	"testing"
)

func TestTableAsTextAndMarkdown(t *testing.T) {
	tab := table{
		Title: "Title", Head: []string{"", "µs", "n"}, Words: 1, Notes: []string{"A note."},
		Rows: [][]string{{"a|b", "1 µs", "12345"}, {"longer", "10 µs", "1"}},
	}
	var b strings.Builder
	tab.text(&b)
	if want := "\nTitle\n             µs      n\n  a|b      1 µs  12345\n  longer  10 µs      1\n  A note.\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	tab.markdown(&b)
	if want := "\n### Title\n\n|  | µs | n |\n|---|--:|--:|\n| a\\|b | 1 µs | 12345 |\n| longer | 10 µs | 1 |\n\nA note.\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[float64]string{
		-110: "−110", 0: "0", 0.0333: "0.033", 0.125: "0.12", 1: "1.00", 9.996: "10.0", 12.34: "12.3", 99.96: "100", 640: "640",
		1234: "1\u202f234", 1234567.4: "1\u202f234\u202f567",
	} {
		if got := grouped(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}
