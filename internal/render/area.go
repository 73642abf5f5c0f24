package render

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Area is a diagram of quantities stacked upon each other over a common axis. From a point on, a quantity keeps its value up
// to the next point.
type Area struct {
	Title          string
	XLabel, YLabel string
	Names          []string    // from the bottom
	X              []float64   // rising
	Y              [][]float64 // by name, at each X; none is below 0
	Mark           float64     // an X to mark; NaN for none
	Colors         []int       // numbers of the colours of names, of which there are 8; nil: in order
}

// fills are the colours of quantities in SVG: strokes' and two more, apart from each other for colour-blind people in this
// order.
var fills = []string{"#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#8f7ee0", "#8c959f"}

// blocks are the colours of quantities in a terminal, by number, and what stands for them where there is none.
var (
	blocks  = []string{"\x1b[34m", "\x1b[94m", "\x1b[33m", "\x1b[31m", "\x1b[32m", "\x1b[35m", "\x1b[36m", "\x1b[90m"}
	letters = []rune{'#', '=', 'o', 'x', '+', '*', '~', '.'}
)

// color is the number of a quantity's colour.
func (a Area) color(k int) int {
	if k < len(a.Colors) {
		k = a.Colors[k]
	}
	return k % len(fills)
}

// highest is the largest sum.
func (a Area) highest() (most float64) {
	for i := range a.X {
		most = max(most, a.sum(i))
	}
	return most
}

func (a Area) sum(i int) (s float64) {
	for _, y := range a.Y {
		s += y[i]
	}
	return s
}

// column is the point with the largest sum in a part of the axis, the k-th of n, or the last one before it.
func (a Area) column(k, n int) int {
	low, high := a.X[0], a.X[len(a.X)-1]
	from, to := low+(high-low)*float64(k)/float64(n), low+(high-low)*float64(k+1)/float64(n)
	best, before := -1, 0
	for i, x := range a.X {
		switch {
		case x < from:
			before = i
		case x < to || k == n-1:
			if best < 0 || a.sum(i) > a.sum(best) {
				best = i
			}
		}
	}
	if best < 0 || a.sum(before) > a.sum(best) && a.X[before] < from {
		return before
	}
	return best
}

// Terminal draws the diagram in width columns and height lines. Each column is of its largest sum.
func (a Area) Terminal(width, height int, color bool) string {
	head := a.head(width, color)
	rows := max(height-strings.Count(head, "\n")-2, 2)
	if len(a.X) == 0 || a.highest() <= 0 {
		return head + center("no data", width) + "\n"
	}
	y := newAxis(0, a.highest(), false, 0, max(2*rows/5, 2))
	x := newAxis(a.X[0], a.X[len(a.X)-1], false, 0, max(width/14, 2))
	labels := yLabels(y, rows)
	margin := 0
	for _, l := range labels {
		margin = max(margin, Width(l))
	}
	columns := max(width-margin-2, 2)
	points := make([]int, columns)
	for k := range points {
		points[k] = a.column(k, columns)
	}
	var b strings.Builder
	b.WriteString(head)
	for r := range rows {
		edge := "│"
		if labels[r] != "" {
			edge = "┤"
		}
		line := padLeft(labels[r], margin) + " " + edge
		level := (float64(rows-1-r) + 0.5) / float64(rows) * a.highest()
		b.WriteString(strings.TrimRight(line+a.row(points, level, color), " ") + "\n")
	}
	b.WriteString(spaces(margin+1) + xAxis(x, columns))
	b.WriteString(xLabels(x, columns, margin+2))
	return b.String()
}

// row is the line of the drawing at a level.
func (a Area) row(points []int, level float64, color bool) string {
	var b strings.Builder
	last := -1
	for _, i := range points {
		of := a.at(i, level)
		if color && of != last {
			b.WriteString(reset)
			if of >= 0 {
				b.WriteString(blocks[a.color(of)])
			}
			last = of
		}
		switch {
		case of < 0:
			b.WriteByte(' ')
		case color:
			b.WriteRune('█')
		default:
			b.WriteRune(letters[a.color(of)])
		}
	}
	if last >= 0 {
		b.WriteString(reset)
	}
	return b.String()
}

// at is the quantity that a level lies in at a point, -1 above all.
func (a Area) at(i int, level float64) int {
	for k, y := range a.Y {
		if level -= y[i]; level < 0 {
			return k
		}
	}
	return -1
}

// head is the title and the legend, of quantities that there is some of.
func (a Area) head(width int, color bool) string {
	var b strings.Builder
	if title := joinNonEmpty(a.Title, parenthesised(a.YLabel)); title != "" {
		b.WriteString(Truncate(title, width) + "\n")
	}
	var lines []string
	line, used := "", 0
	for k, name := range a.Names {
		mark := string(letters[a.color(k)])
		if color {
			mark = blocks[a.color(k)] + "█" + reset
		}
		n := 2 + Width(name) + len(gap)
		if used+n > width && used > 0 {
			lines, line, used = append(lines, line), "", 0
		}
		line += mark + " " + name + gap
		used += n
	}
	if used > 0 {
		lines = append(lines, line)
	}
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// SVG returns the diagram as a stand-alone SVG document of width×height pixels, light or dark as the viewer prefers.
func (a Area) SVG(width, height int) string {
	width, height = max(width, 160), max(height, 120)
	area := box{left: 64, top: 20, right: float64(width) - 20, bottom: float64(height) - 52}
	if a.Title != "" {
		area.top += 20
	}
	legend := a.legend(area, float64(width))
	area.top += 20 * float64(1+strings.Count(legend, "<!-- line -->"))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	if a.Title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", escape(a.Title))
	}
	b.WriteString(svgStyle)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	if a.Title != "" {
		text(&b, area.left, 26, "ink title", "start", a.Title)
	}
	b.WriteString(legend)
	if len(a.X) == 0 || a.highest() <= 0 {
		text(&b, area.x(0.5), area.y(0.5), "soft", "middle", "no data")
		return b.String() + "</svg>\n"
	}
	x := newAxis(a.X[0], a.X[len(a.X)-1], false, 0, max(int(area.right-area.left)/90, 2))
	y := newAxis(0, a.highest(), false, 0.04, max(int(area.bottom-area.top)/45, 2))
	y.low, y.ticks = 0, nil
	y.ticks = y.linearTicks(max(int(area.bottom-area.top)/45, 2))
	svgAxes(&b, area, x, y)
	Plot{XLabel: a.XLabel, YLabel: a.YLabel}.svgLabels(&b, area)
	base := make([]float64, len(a.X))
	for k := range a.Y {
		fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`+"\n", fills[a.color(k)], a.svgBand(base, a.Y[k], x, y, area))
		for i := range base {
			base[i] += a.Y[k][i]
		}
	}
	if at := x.at(a.Mark); !math.IsNaN(at) {
		fmt.Fprintf(&b, `<path class="frame" stroke-dasharray="4 3" d="M%.1f %.1fV%.1f"/>`+"\n", area.x(at), area.top, area.bottom)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend are the names with their colours, in lines.
func (a Area) legend(area box, width float64) string {
	var b strings.Builder
	at, down := area.left, area.top
	for k, name := range a.Names {
		n := 20 + 7*float64(Width(name)) + 18
		if at+n > width && at > area.left {
			at, down = area.left, down+20
			b.WriteString("<!-- line -->\n")
		}
		fmt.Fprintf(&b, `<rect fill="%s" x="%.1f" y="%.1f" width="12" height="12"/>`+"\n", fills[a.color(k)], at, down-6)
		text(&b, at+18, down+4, "ink", "start", name)
		at += n
	}
	return b.String()
}

// svgBand is the outline of a quantity upon those below it: steps, whose points that change nothing are left out.
func (a Area) svgBand(base, add []float64, x, y axis, area box) string {
	px, low, high := make([]string, len(base)), make([]string, len(base)), make([]string, len(base))
	for i := range base {
		px[i] = coordinate(area.x(x.at(a.X[i])))
		low[i], high[i] = coordinate(area.y(y.at(base[i]))), coordinate(area.y(y.at(base[i]+add[i])))
	}
	var b strings.Builder
	last := len(base) - 1
	b.WriteString("M" + px[0] + " " + high[0])
	for i := 1; i <= last; i++ {
		if high[i] != high[i-1] {
			b.WriteString("H" + px[i] + "V" + high[i])
		}
	}
	b.WriteString("H" + px[last] + "V" + low[last])
	for i := last; i > 0; i-- {
		if low[i] != low[i-1] {
			b.WriteString("H" + px[i] + "V" + low[i-1])
		}
	}
	return b.String() + "H" + px[0] + "Z"
}

// coordinate is a number of pixels with one decimal where it needs one.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
