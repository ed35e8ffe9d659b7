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

// table is what a page says of each mutant between two comments: what has found it,
// and how many seeds that took. Everything else comes from the mutants' heads.
type table struct {
	file          string
	before, after string // of the page
	rows          map[string]result
}

type result struct{ found, took string }

const (
	begins = "<!-- what follows is written by make mutants -->\n"
	ends   = "<!-- what make mutants writes ends here -->\n"
)

func readTable(file string) (*table, error) {
	page, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := &table{file: file, rows: map[string]result{}}
	rows, hasEnd := "", false
	t.before, rows, _ = strings.Cut(string(page), begins)
	if rows, t.after, hasEnd = strings.Cut(rows, ends); !hasEnd {
		return nil, fmt.Errorf("%s: no place for the table", file)
	}
	for row := range strings.Lines(rows) {
		_, link, _ := strings.Cut(row, "mutants/")
		name, _, isRow := strings.Cut(link, ".patch")
		if cells := strings.Split(row, " | "); isRow && len(cells) == 5 {
			t.rows[name] = result{cells[2], strings.Trim(cells[4], " |\n")}
		}
	}
	return t, nil
}

// lacks says which mutants have no row, or which rows no mutant.
func (t *table) lacks(mutants []mutant) error {
	names := map[string]bool{}
	var wrong []string
	for _, m := range mutants {
		names[m.name] = true
		if _, has := t.rows[m.name]; !has {
			wrong = append(wrong, m.name)
		}
	}
	for name := range t.rows {
		if !names[name] {
			wrong = append(wrong, name)
		}
	}
	if wrong != nil {
		return fmt.Errorf("%s is not up to date about %s: run make mutants", t.file, strings.Join(wrong, ", "))
	}
	return nil
}

// write writes the page with what has been found now. What was found before stays
// for mutants that were not tried.
func (t *table) write(mutants []mutant, verdicts []verdict) error {
	for _, v := range verdicts {
		if v.found != "" {
			t.rows[v.name] = result{v.found, v.took()}
		}
	}
	var b strings.Builder
	b.WriteString("\n| mutant | layer | found by | budget | took |\n|---|---|---|---|---|\n")
	for _, m := range mutants {
		if r, has := t.rows[m.name]; has {
			number, _, _ := strings.Cut(m.name, "-")
			fmt.Fprintf(&b, "| [%s](../test/mutants/%s.patch): %s | %s | %s | %s | %s |\n",
				number, m.name, m.says, m.layer, r.found, m.budget(), r.took)
		}
	}
	b.WriteString("\n")
	return os.WriteFile(t.file, []byte(t.before+begins+b.String()+ends+t.after), 0o644)
}
