package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is figures for people, the same in text, in Markdown and in HTML.
type table struct {
	Title string
	Head  []string
	Words int // so many columns at the left are words, the others numbers
	Rows  [][]string
	Notes []string // each a sentence
}

// text prints a table with its columns aligned.
func (t table) text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.Title)
	all := append([][]string{t.Head}, t.Rows...)
	widths := make([]int, len(t.Head))
	for _, r := range all {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range all {
		var line strings.Builder
		for i, cell := range r {
			room := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.Words {
				cell += room
			} else {
				cell = room + cell
			}
			line.WriteString("  " + cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
}

// markdown prints a table as GitHub reads it.
func (t table) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", t.Title)
	line := func(cells []string) {
		fmt.Fprint(w, "|")
		for _, c := range cells {
			fmt.Fprintf(w, " %s |", strings.ReplaceAll(c, "|", `\|`))
		}
		fmt.Fprintln(w)
	}
	line(t.Head)
	fmt.Fprint(w, "|")
	for i := range t.Head {
		if i < t.Words {
			fmt.Fprint(w, "---|")
		} else {
			fmt.Fprint(w, "--:|")
		}
	}
	fmt.Fprintln(w)
	for _, r := range t.Rows {
		line(r)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}
