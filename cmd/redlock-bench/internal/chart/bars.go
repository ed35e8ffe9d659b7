package chart

import "html/template"

// A Bar is one row: parts that follow each other from the left, or with Spread
// points of a range from its first to its last.
type Bar struct {
	Name  string
	Note  string // at its end
	Parts []Part
}

// A Part is as long as its value, or in a spread stands at it.
type Part struct {
	Color int
	Faint bool
	Value float64
}

// Bars are rows with a name each.
type Bars struct {
	Title  string
	XLabel string
	Log    bool // of a spread only
	Spread bool
	X      func(float64) string
	Bars   []Bar
}

// Rows are so high, the name above and the bar below.
const (
	barRow     = 38
	barTop     = 6
	barLeft    = 24 // half of a tick's words
	barPadding = 90 // at the right, for notes
)

// SVG is the chart as a part of a page.
func (b Bars) SVG() (template.HTML, error) {
	bottom := float64(barTop + barRow*len(b.Bars))
	d := drawing{Width: width, Height: bottom + marginBottom, Title: b.Title}
	least, most := b.extent()
	x := newScale(least, most, barLeft, width-barPadding, b.Log)
	for _, t := range x.ticks {
		at := x.at(t)
		d.Lines = append(d.Lines, line{at, barTop, at, bottom, "grid"})
		d.Texts = append(d.Texts, text{at, bottom + 15, "middle", "tick", b.X(t)})
	}
	for i, bar := range b.Bars {
		top := float64(barTop + barRow*i)
		d.Texts = append(d.Texts, text{barLeft, top + 13, "start", "name", bar.Name})
		end := b.row(&d, x, bar, top+18)
		d.Texts = append(d.Texts, text{end + 6, top + 30, "start", "tick", bar.Note})
	}
	d.Texts = append(d.Texts, text{width - 8, bottom + 33, "end", "label", b.XLabel})
	return d.svg()
}

// row draws a bar and returns where it ends.
func (b Bars) row(d *drawing, x scale, bar Bar, top float64) (end float64) {
	const thick = 14
	sum := 0.0
	end = x.at(x.least)
	first := true
	for _, p := range bar.Parts {
		of := class(p.Color)
		if b.Spread {
			if !x.takes(p.Value) {
				continue
			}
			at := x.at(p.Value)
			if !first {
				d.Lines = append(d.Lines, line{end, top + thick/2, at, top + thick/2, "line " + of})
			}
			d.Dots = append(d.Dots, dot{at, top + thick/2, 5, "dot " + of})
			end, first = at, false
			continue
		}
		if p.Faint {
			of += " faint"
		}
		from, to := x.at(sum), x.at(sum+p.Value)
		d.Rects = append(d.Rects, rect{from, top, to - from, thick, "bar " + of})
		sum += p.Value
		end = to
	}
	return end
}

func (b Bars) extent() (least, most float64) {
	for _, bar := range b.Bars {
		sum := 0.0
		for _, p := range bar.Parts {
			if b.Spread {
				most = max(most, p.Value)
				if p.Value > 0 && (least == 0 || p.Value < least) {
					least = p.Value
				}
			}
			sum += p.Value
		}
		if !b.Spread {
			most = max(most, sum)
		}
	}
	if b.Log {
		return max(least, 1e-9), max(most, 1e-9)
	}
	return 0, most
}
