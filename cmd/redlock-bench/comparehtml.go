package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/quorumlock/quorumlock/cmd/redlock-bench/internal/rival"
)

//go:embed compare.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is a comparison as one HTML file that needs no other.
type page struct {
	Title, When, Machine string
	Warnings, About      []string
	Parts                []part
}

// part is a chapter of the page.
type part struct {
	Title, Words string
	Plots        []plot
	Tables       []table
}

// plot is a chart with its words.
type plot struct {
	Title, Caption string
	Legend         []legend
	SVG            template.HTML
	Table          *table // the same for who does not see it; nil where one of the part's tables says it
}

// legend is a colour's name.
type legend struct {
	Name   string
	Color  int
	Dashed bool
}

// html writes a comparison as a page.
func (c comparison) html(w io.Writer) error {
	p := page{
		Title: "quorumlock and its peers",
		When:  c.Started.UTC().Format("2 January 2006, 15:04 UTC"),
		Machine: fmt.Sprintf("%d CPUs (%s), %s/%s %s, %s", c.Machine.CPUs, c.Machine.CPU, c.Machine.OS, c.Machine.Arch,
			c.Machine.Kernel, c.Machine.Go),
		About: c.about(), Warnings: c.warnings(),
	}
	for _, ch := range chapters {
		scenes := c.of(ch.mode)
		if len(scenes) == 0 {
			continue
		}
		of := part{Title: ch.title, Tables: ch.of(scenes)}
		if ch.plots != nil {
			var err error
			if of.Plots, err = ch.plots(c, scenes); err != nil {
				return err
			}
		}
		p.Parts = append(p.Parts, of)
	}
	if len(c.Aims) > 0 {
		p.Parts = append(p.Parts, part{Title: "What was aimed at", Tables: []table{c.aimTable()}})
	}
	p.Parts = append(p.Parts, part{Title: "Who was compared", Tables: []table{c.promises()}})
	return pageTemplate.Execute(w, p)
}

// warnings are what nobody may overlook.
func (c comparison) warnings() (all []string) {
	if c.Settings.Nodes == kindEmbedded {
		all = append(all, "Embedded servers: this shows that it works, not how fast Redis is. None of these figures can be compared with those of real servers.")
	}
	if c.Settings.Quick {
		all = append(all, "A quick run, with short measurements: the figures say little.")
	}
	if n := c.overlaps(); n > 0 {
		all = append(all, fmt.Sprintf("Two held a key at once, %d times.", n))
	}
	if c.Interrupted {
		all = append(all, "Interrupted: not everything was measured.")
	}
	return all
}

// Colours of what is no implementation.
const colorLimit = 5

// colorOf is an implementation's colour, the same everywhere.
func colorOf(who string) int {
	return slices.IndexFunc(rival.All, func(l rival.Lock) bool { return l.Name == who })
}

// legendOf names who is in some scenes.
func legendOf(scenes []scored) (all []legend) {
	for _, sc := range scenes {
		for _, r := range sc.Rows {
			l := legend{Name: r.Title, Color: colorOf(r.Who)}
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}
