package render

import (
	"fmt"
	"math"
	"strings"
)

// strokes are the curves' colours in SVG: Okabe and Ito's, which colour-blind people
// tell apart, at lightnesses that stand out from white and from near-black.
var strokes = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

const svgStyle = `<style>
.page { fill: #ffffff } .ink { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d8dee4 } .frame { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #2a313c } .frame { stroke: #656c76 }
}
text { font: 12px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round }
</style>
`

// box is the drawing's area inside the SVG.
type box struct{ left, top, right, bottom float64 }

func (b box) x(at float64) float64 { return b.left + at*(b.right-b.left) }
func (b box) y(at float64) float64 { return b.bottom - at*(b.bottom-b.top) }

// SVG returns the plot as a stand-alone SVG document of width×height pixels, light
// or dark as the viewer prefers. A curve keeps at most four points per pixel column,
// among them its extremes, however long it is.
func (p Plot) SVG(width, height int) string {
	width, height = max(width, 160), max(height, 120)
	area := box{left: 64, top: 20, right: float64(width) - 20, bottom: float64(height) - 52}
	if p.Title != "" {
		area.top += 20
	}
	if p.named() {
		area.top += 20
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	if p.Title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", escape(p.Title))
	}
	b.WriteString(svgStyle)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	if p.Title != "" {
		text(&b, area.left, 26, "ink title", "start", p.Title)
	}
	p.svgLegend(&b, area)
	x, y, ok := p.axes(max(int(area.right-area.left)/90, 2), max(int(area.bottom-area.top)/45, 2))
	svgAxes(&b, area, x, y)
	p.svgLabels(&b, area)
	if !ok {
		text(&b, area.x(0.5), area.y(0.5), "soft", "middle", "no data")
	}
	for i, s := range p.Series {
		if path := svgPath(s, x, y, area); ok && path != "" {
			fmt.Fprintf(&b, `<path class="curve" stroke="%s" d="%s"/>`+"\n", strokes[i%len(strokes)], path)
			svgDots(&b, s, x, y, area, strokes[i%len(strokes)])
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// named reports whether a legend is needed.
func (p Plot) named() bool {
	for _, s := range p.Series {
		if s.Name != "" {
			return true
		}
	}
	return false
}

func (p Plot) svgLegend(b *strings.Builder, area box) {
	at := area.left
	for i, s := range p.Series {
		if s.Name == "" {
			continue
		}
		fmt.Fprintf(b, `<path class="curve" stroke="%s" d="M%.1f %.1fh18"/>`+"\n", strokes[i%len(strokes)], at, area.top-16)
		text(b, at+24, area.top-12, "ink", "start", s.Name)
		at += 24 + 7*float64(Width(s.Name)) + 20
	}
}

func svgAxes(b *strings.Builder, area box, x, y axis) {
	for _, t := range y.ticks {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", area.left, area.y(t.at), area.right)
		text(b, area.left-8, area.y(t.at)+4, "soft", "end", t.label)
	}
	for _, t := range x.ticks {
		fmt.Fprintf(b, `<path class="frame" d="M%.1f %.1fv5"/>`+"\n", area.x(t.at), area.bottom)
		text(b, area.x(t.at), area.bottom+19, "soft", "middle", t.label)
	}
	fmt.Fprintf(b, `<path class="frame" fill="none" d="M%.1f %.1fV%.1fH%.1f"/>`+"\n", area.left, area.top, area.bottom, area.right)
}

func (p Plot) svgLabels(b *strings.Builder, area box) {
	if p.XLabel != "" {
		text(b, area.x(0.5), area.bottom+40, "ink", "middle", p.XLabel)
	}
	if p.YLabel != "" {
		fmt.Fprintf(b, `<text class="ink" text-anchor="middle" transform="translate(16 %.1f) rotate(-90)">%s</text>`+"\n", area.y(0.5), escape(p.YLabel))
	}
}

func text(b *strings.Builder, x, y float64, class, anchor, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escape(s))
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes s safe as text of XML, which has no control characters.
func escape(s string) string {
	return escaper.Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, s))
}

// fewPoints is how many points a curve has at most whose points are drawn.
const fewPoints = 24

// svgDots draws the points of a curve that has few: one alone would not be seen.
func svgDots(b *strings.Builder, s Series, x, y axis, area box, color string) {
	if len(s.Y) > fewPoints {
		return
	}
	for i, v := range s.Y {
		if fx, fy := x.at(s.x(i)), y.at(v); !math.IsNaN(fx) && !math.IsNaN(fy) {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", area.x(fx), area.y(fy), color)
		}
	}
}

type point struct{ x, y float64 }

// svgPath returns the curve as path data. A point without neighbours is a dot.
func svgPath(s Series, x, y axis, area box) string {
	var b strings.Builder
	var run []point
	flush := func() {
		command := "M"
		for _, q := range thin(run) {
			fmt.Fprintf(&b, "%s%.1f %.1f", command, q.x, q.y)
			command = "L"
		}
		if len(run) == 1 {
			b.WriteString("h0")
		}
		run = run[:0]
	}
	for i, v := range s.Y {
		fx, fy := x.at(s.x(i)), y.at(v)
		if math.IsNaN(fx) || math.IsNaN(fy) {
			flush()
			continue
		}
		run = append(run, point{area.x(fx), area.y(fy)})
	}
	flush()
	return b.String()
}

// thin keeps of the points that share a pixel column the first, the lowest, the
// highest and the last, in their order.
func thin(points []point) []point {
	var out []point
	for start := 0; start < len(points); {
		end, low, high := start, start, start
		for ; end < len(points) && math.Floor(points[end].x) == math.Floor(points[start].x); end++ {
			if points[end].y < points[low].y {
				low = end
			}
			if points[end].y > points[high].y {
				high = end
			}
		}
		last := -1
		for _, i := range [4]int{start, min(low, high), max(low, high), end - 1} {
			if i > last {
				out = append(out, points[i])
				last = i
			}
		}
		start = end
	}
	return out
}
