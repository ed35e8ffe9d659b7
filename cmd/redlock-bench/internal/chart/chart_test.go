package chart

import (
	"encoding/xml"
	"html/template"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestTicksAreRoundAndReachAround(t *testing.T) {
	for _, test := range []struct {
		least, most float64
		log         bool
		want        []float64
	}{
		{0, 97, false, []float64{0, 20, 40, 60, 80, 100}},
		{0, 4, false, []float64{0, 1, 2, 3, 4}},
		{0, 0, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0, 0.9, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{3, 2000, true, []float64{1, 10, 100, 1000, 10_000}},
		{10, 1000, true, []float64{10, 100, 1000}},
		{7, 7, true, []float64{1, 10}},
	} {
		s := newScale(test.least, test.most, 0, 100, test.log)
		if len(s.ticks) != len(test.want) {
			t.Errorf("%v: %v, want %v", test, s.ticks, test.want)
			continue
		}
		for i, tick := range s.ticks {
			if math.Abs(tick-test.want[i]) > 1e-9*max(1, tick) {
				t.Errorf("%v: %v, want %v", test, s.ticks, test.want)
			}
		}
	}
}

func TestScaleIsMonotonousBetweenItsEnds(t *testing.T) {
	for _, log := range []bool{false, true} {
		s := newScale(1, 1000, 50, 400, log)
		if s.at(s.least) != 50 || math.Abs(s.at(s.most)-400) > 1e-9 {
			t.Errorf("log %v: from %v to %v", log, s.at(s.least), s.at(s.most))
		}
		for v := s.least + 1; v < s.most; v++ {
			if s.at(v) <= s.at(v-1) && s.takes(v-1) {
				t.Fatalf("log %v: %v is not right of %v", log, v, v-1)
			}
		}
	}
	if s := newScale(1, 10, 0, 1, true); s.takes(0) || s.takes(-1) {
		t.Error("a logarithmic scale has a place for 0")
	}
}

func TestLineBreaksOffWhereAPointIsMissing(t *testing.T) {
	x, y := newScale(0, 4, 0, 4, false), newScale(1, 10, 10, 1, true)
	got := through([]Point{{X: 0, Y: 1}, {X: 1, Y: 10}, {X: 2, Y: 5, Gap: true}, {X: 3, Y: 0}, {X: 4, Y: 1}}, x, y)
	if want := "M0.0 10.0L1.0 1.0M4.0 10.0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumbersAtAxes(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 64: "64", 999: "999", 1000: "1k", 2500: "2.5k", 3e6: "3M"} {
		if got := Short(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{100: "100 µs", 1000: "1 ms", 2.5e6: "2.5 s"} {
		if got := Micros(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// elements are the names of what an SVG consists of; it has to be XML.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, svg)
		}
		if e, is := token.(xml.StartElement); is {
			count[e.Name.Local]++
		}
	}
}

func TestChartsAreXMLWhateverNamesAreInThem(t *testing.T) {
	const evil = `<script>alert("1 & 2")</script>`
	lines, err := Lines{
		Title: evil, XLabel: evil, YLabel: evil, X: Short, Y: Short,
		Series: []Series{{Dots: true, Points: []Point{{X: 1, Y: 2}, {X: 2, Y: 3}, {X: 3, Gap: true}}}, {Dashed: true, Points: []Point{{X: 1, Y: 1}}}},
		Bands:  []Band{{From: 1, To: 9, Label: evil}},
	}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if got := elements(t, string(lines)); got["script"] != 0 || got["path"] != 2 || got["circle"] != 2 || got["rect"] != 1 {
		t.Errorf("%v", got)
	}
	bars, err := Bars{
		Title: evil, XLabel: evil, X: Short,
		Bars: []Bar{{Name: evil, Note: evil, Parts: []Part{{Value: 1}, {Value: 2, Faint: true}}}, {Name: "none"}},
	}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if got := elements(t, string(bars)); got["script"] != 0 || got["rect"] != 2 {
		t.Errorf("%v", got)
	}
}

func TestChartOfNothingIsStillOne(t *testing.T) {
	for name, svg := range map[string]interface{ SVG() (template.HTML, error) }{
		"lines": Lines{XLog: true, YLog: true, X: Short, Y: Short, Series: []Series{{}}},
		"bars":  Bars{Log: true, Spread: true, X: Micros, Bars: []Bar{{Name: "x"}}},
	} {
		got, err := svg.SVG()
		if err != nil || strings.Contains(string(got), "NaN") || strings.Contains(string(got), "Inf") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		elements(t, string(got))
	}
}

func TestStackedPartsFollowEachOther(t *testing.T) {
	b := Bars{X: Short, Bars: []Bar{{Parts: []Part{{Value: 30}, {Value: 70}}}}}
	least, most := b.extent()
	if least != 0 || most != 100 {
		t.Errorf("from %v to %v", least, most)
	}
	var d drawing
	x := newScale(0, 100, 0, 100, false)
	if end := b.row(&d, x, b.Bars[0], 0); end != 100 {
		t.Errorf("it ends at %v", end)
	}
	if want := []rect{{0, 0, 30, 14, "bar s0"}, {30, 0, 70, 14, "bar s0"}}; !reflect.DeepEqual(d.Rects, want) {
		t.Errorf("%v", d.Rects)
	}
}
