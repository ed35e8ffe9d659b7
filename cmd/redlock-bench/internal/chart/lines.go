package chart

import (
	"html/template"
	"math"
)

// A Point is one value of a series. Where there is a Gap there is none.
type Point struct {
	X, Y float64
	Gap  bool
}

// A Series is one line.
type Series struct {
	Color  int // which of the page's
	Points []Point
	Dashed bool
	Dots   bool
}

// A Band is a stretch of the horizontal axis.
type Band struct {
	From, To float64
	Label    string
}

// Lines are series over a common axis.
type Lines struct {
	Title      string
	XLabel     string
	YLabel     string
	XLog, YLog bool
	XTicks     []float64 // nil: round numbers
	X, Y       func(float64) string
	Series     []Series
	Bands      []Band
}

// Margins around what is drawn, for the axes' words.
const (
	marginLeft, marginRight = 52, 12
	marginTop, marginBottom = 26, 40
)

// SVG is the chart as a part of a page.
func (l Lines) SVG() (template.HTML, error) {
	leastX, mostX, leastY, mostY := l.extent()
	x := newScale(leastX, mostX, marginLeft, width-marginRight, l.XLog)
	x.least, x.most = leastX, mostX // the lines fill the width
	if mostX <= leastX {
		x.most = leastX + 1
	}
	y := newScale(leastY, mostY, height-marginBottom, marginTop, l.YLog)
	if l.XTicks != nil {
		x.ticks = l.XTicks
	}
	d := drawing{Width: width, Height: height, Title: l.Title}
	for _, b := range l.Bands {
		from, to := x.at(max(b.From, x.least)), x.at(min(b.To, x.most))
		d.Rects = append(d.Rects, rect{from, marginTop, to - from, height - marginTop - marginBottom, "band"})
		d.Texts = append(d.Texts, text{(from + to) / 2, marginTop + 12, "middle", "note", b.Label})
	}
	l.axes(&d, x, y)
	for _, s := range l.Series {
		of := "line " + class(s.Color)
		if s.Dashed {
			of += " dashed"
		}
		d.Paths = append(d.Paths, path{through(s.Points, x, y), of})
		for _, p := range s.Points {
			if s.Dots && !p.Gap && x.takes(p.X) && y.takes(p.Y) {
				d.Dots = append(d.Dots, dot{x.at(p.X), y.at(p.Y), 3.5, "dot " + class(s.Color)})
			}
		}
	}
	return d.svg()
}

// extent is what the axes have to reach. A linear one begins at 0.
func (l Lines) extent() (leastX, mostX, leastY, mostY float64) {
	leastX, leastY = math.Inf(1), math.Inf(1)
	mostX, mostY = math.Inf(-1), math.Inf(-1)
	for _, s := range l.Series {
		for _, p := range s.Points {
			if p.Gap || l.YLog && p.Y <= 0 || l.XLog && p.X <= 0 {
				continue
			}
			leastX, mostX = min(leastX, p.X), max(mostX, p.X)
			leastY, mostY = min(leastY, p.Y), max(mostY, p.Y)
		}
	}
	if mostX < leastX {
		leastX, mostX, leastY, mostY = 1, 2, 1, 2
	}
	if !l.YLog {
		leastY = 0
	}
	return leastX, mostX, leastY, mostY
}

func (l Lines) axes(d *drawing, x, y scale) {
	for _, t := range y.ticks {
		at := y.at(t)
		d.Lines = append(d.Lines, line{marginLeft, at, width - marginRight, at, "grid"})
		d.Texts = append(d.Texts, text{marginLeft - 5, at + 4, "end", "tick", l.Y(t)})
	}
	free := 0.0 // where the next tick's words may begin
	for _, t := range x.ticks {
		if t < x.least || t > x.most {
			continue
		}
		at, label := x.at(t), l.X(t)
		if at-roomFor(label)/2 < free {
			continue
		}
		free = at + roomFor(label)/2 + 4
		d.Lines = append(d.Lines, line{at, height - marginBottom, at, height - marginBottom + 4, "axis"})
		d.Texts = append(d.Texts, text{at, height - marginBottom + 17, "middle", "tick", label})
	}
	d.Lines = append(d.Lines, line{marginLeft, height - marginBottom, width - marginRight, height - marginBottom, "axis"})
	d.Texts = append(d.Texts,
		text{4, 13, "start", "label", l.YLabel},
		text{width - marginRight, height - 6, "end", "label", l.XLabel})
}
