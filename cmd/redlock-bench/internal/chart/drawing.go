// Package chart draws figures as SVG that stands in a page without scripts. Its
// colours are the page's: what is drawn has classes, s0 to s5 for the series.
package chart

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Size of every drawing in its own units. It is that of a small phone's window,
// so that letters stay readable where it is not enlarged.
const (
	width  = 400
	height = 260
)

//go:embed drawing.svg
var drawingText string

var drawingTemplate = template.Must(template.New("drawing").Parse(drawingText))

// drawing is what an SVG consists of, in the order in which it is painted.
type drawing struct {
	Width, Height float64
	Title         string // read to those who do not see it
	Rects         []rect
	Lines         []line
	Paths         []path
	Dots          []dot
	Texts         []text
}

type rect struct {
	X, Y, Width, Height float64
	Class               string
}

type line struct {
	X1, Y1, X2, Y2 float64
	Class          string
}

type path struct{ D, Class string }

type dot struct {
	X, Y, R float64
	Class   string
}

type text struct {
	X, Y   float64
	Anchor string // start, middle or end
	Class  string
	Text   string
}

// svg is the drawing as a part of a page.
func (d drawing) svg() (template.HTML, error) {
	var b strings.Builder
	err := drawingTemplate.Execute(&b, d)
	return template.HTML(b.String()), err
}

// through is a path along points; where one is missing it breaks off.
func through(points []Point, x, y scale) string {
	var b strings.Builder
	pen := "M"
	for _, p := range points {
		if p.Gap || !x.takes(p.X) || !y.takes(p.Y) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, x.at(p.X), y.at(p.Y))
		pen = "L"
	}
	return b.String()
}

// class is that of a series.
func class(series int) string { return fmt.Sprint("s", series) }

// roomFor is about how wide a text is.
func roomFor(s string) float64 { return 6.8 * float64(utf8.RuneCountInString(s)) }
