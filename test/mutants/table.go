package main

import (
	"fmt"
	"os"
	"strings"
)

// line is a verdict for who watches.
func (v verdict) line() string {
	switch {
	case v.left != "":
		return fmt.Sprintf("left out   %-44s %s", v.name, strings.Join(strings.Fields(v.left), " "))
	case !v.ok():
		return fmt.Sprintf("NOT FOUND  %-44s %s", v.name, v.why)
	}
	return fmt.Sprintf("found      %-44s %-10s %6s of %-12s %s", v.name, v.layer, v.took(), v.budget(), v.found)
}

// took is how many seeds it took.
func (v verdict) took() string {
	if v.seeds == 0 {
		return ""
	}
	return fmt.Sprint(v.seeds)
}

const (
	tableBegins = "<!-- what follows is written by make mutants -->\n"
	tableEnds   = "<!-- what make mutants writes ends here -->\n"
)

// writeTable writes the verdicts into the page in file, between two comments.
func writeTable(file string, verdicts []verdict) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s: no place for the table", file)
	}
	var table strings.Builder
	table.WriteString("\n| mutant | layer | found by | budget | took |\n|---|---|---|---|---|\n")
	for _, v := range verdicts {
		if v.left != "" {
			return fmt.Errorf("%s was left out, and the table is of all: %s", v.name, v.left)
		}
		fmt.Fprintf(&table, "| [%s](../test/mutants/%s.patch): %s | %s | %s | %s | %s |\n",
			number(v.name), v.name, v.says, v.layer, v.found, v.budget(), v.took())
	}
	table.WriteString("\n")
	return os.WriteFile(file, []byte(before+tableBegins+table.String()+tableEnds+after), 0o644)
}

// number is the first part of a mutant's name.
func number(name string) string {
	n, _, _ := strings.Cut(name, "-")
	return n
}
