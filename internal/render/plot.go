package render

import (
	"math"
	"strings"
)

// Series is one curve: points joined in order. A point that cannot be drawn
// interrupts it.
type Series struct {
	Name string
	X    []float64 // as long as Y; nil: 0, 1, 2, …
	Y    []float64
}

// x returns the place of point i, NaN if X is too short.
func (s Series) x(i int) float64 {
	switch {
	case s.X == nil:
		return float64(i)
	case i < len(s.X):
		return s.X[i]
	}
	return math.NaN()
}

// Plot is a diagram of curves over common axes.
type Plot struct {
	Title          string
	XLabel, YLabel string
	LogX, LogY     bool
	WholeX         bool // x counts something: ticks are at whole numbers
	Series         []Series
}

// axes returns axes around all points that can be drawn; ok is false without any.
func (p Plot) axes(xTicks, yTicks int) (x, y axis, ok bool) {
	var xs, ys span
	for _, s := range p.Series {
		for i, v := range s.Y {
			if u := s.x(i); drawable(u, p.LogX) && drawable(v, p.LogY) {
				xs.add(u)
				ys.add(v)
			}
		}
	}
	if !xs.any {
		return x, y, false
	}
	x = newAxis(xs.low, xs.high, p.LogX, 0, xTicks)
	if p.WholeX {
		x.ticks = x.wholeTicks(xTicks)
	}
	return x, newAxis(ys.low, ys.high, p.LogY, 0.04, yTicks), true
}

// span is the range of the values added to it.
type span struct {
	low, high float64
	any       bool
}

func (s *span) add(v float64) {
	if !s.any {
		*s = span{v, v, true}
	}
	s.low, s.high = min(s.low, v), max(s.high, v)
}

const reset = "\x1b[0m"

// ansi are the colours of curves: of the basic palette, which every scheme makes readable.
var ansi = []string{"\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[31m", "\x1b[34m"}

// marks draw the curves after the first where there is no colour.
var marks = []rune{'⣿', 'o', 'x', '+', '*', '#'}

// Terminal draws the plot in width columns and height lines, in dots of which a
// character holds 2×4. Without colour the curves after the first are drawn with
// letters, one per character.
func (p Plot) Terminal(width, height int, color bool) string {
	head := p.head(width, color)
	around := strings.Count(head, "\n") + 2 // the axis and its labels
	if p.XLabel != "" {
		around++
	}
	rows := max(height-around, 2)
	x, y, ok := p.axes(max(width/14, 2), max(2*rows/5, 2))
	if !ok {
		return head + center("no data", width) + "\n"
	}
	labels := yLabels(y, rows)
	margin := 0
	for _, l := range labels {
		margin = max(margin, Width(l))
	}
	columns := max(width-margin-2, 2)
	c := newCanvas(columns, rows, color)
	for i, s := range p.Series {
		c.curve(s, i, x, y)
	}
	var b strings.Builder
	b.WriteString(head)
	for r := range rows {
		edge := "│"
		if labels[r] != "" {
			edge = "┤"
		}
		line := padLeft(labels[r], margin) + " " + edge + c.row(r)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString(spaces(margin+1) + xAxis(x, columns))
	b.WriteString(xLabels(x, columns, margin+2))
	if p.XLabel != "" {
		b.WriteString(spaces(margin+2) + center(Truncate(p.XLabel, columns), columns) + "\n")
	}
	return b.String()
}

// head is the title and the legend; a single curve without a name needs none.
func (p Plot) head(width int, color bool) string {
	var b strings.Builder
	if title := joinNonEmpty(p.Title, parenthesised(p.YLabel)); title != "" {
		b.WriteString(Truncate(title, width) + "\n")
	}
	var entries []string
	used := 0
	for i, s := range p.Series {
		entry := mark(i, color) + " " + s.Name
		if s.Name == "" || used+Width(entry) > width {
			continue
		}
		used += Width(entry) + len(gap)
		entries = append(entries, entry)
	}
	if len(entries) > 0 {
		b.WriteString(strings.Join(entries, gap) + "\n")
	}
	return b.String()
}

func parenthesised(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

func mark(i int, color bool) string {
	if color {
		return ansi[i%len(ansi)] + "━━" + reset
	}
	return string(marks[i%len(marks)])
}

// yLabels returns the label of each row, "" for most.
func yLabels(y axis, rows int) []string {
	labels := make([]string, rows)
	for _, t := range y.ticks {
		labels[rows-1-int(math.Round(t.at*float64(rows-1)))] = t.label
	}
	return labels
}

func xAxis(x axis, columns int) string {
	line := []rune("└" + strings.Repeat("─", columns))
	for _, t := range x.ticks {
		line[1+column(t, columns)] = '┬'
	}
	return string(line) + "\n"
}

func column(t tick, columns int) int { return int(math.Round(t.at * float64(columns-1))) }

// xLabels centres each label below its tick and leaves out those that would touch
// the one before.
func xLabels(x axis, columns, indent int) string {
	line := ""
	for _, t := range x.ticks {
		start := indent + column(t, columns) - (Width(t.label)-1)/2
		start = max(min(start, indent+columns-Width(t.label)), 0)
		if used := Width(line); used == 0 || start > used {
			line += spaces(start-used) + t.label
		}
	}
	return line + "\n"
}

// canvas is a grid of characters made of 2×4 dots.
type canvas struct {
	columns, rows int
	color         bool
	dots          []rune // the braille pattern of each character
	marks         []rune // what replaces it
	colors        []int8 // the curve drawn last, -1 for none
}

func newCanvas(columns, rows int, color bool) *canvas {
	n := columns * rows
	c := &canvas{columns: columns, rows: rows, color: color, dots: make([]rune, n), marks: make([]rune, n), colors: make([]int8, n)}
	for i := range c.colors {
		c.colors[i] = -1
	}
	return c
}

// curve draws series number index. A point alone is a mark, which a dot would not be.
func (c *canvas) curve(s Series, index int, x, y axis) {
	width, height := 2*c.columns-1, 4*c.rows-1
	broken := true
	var lastX, lastY int
	for i, v := range s.Y {
		fx, fy := x.at(s.x(i)), y.at(v)
		if math.IsNaN(fx) || math.IsNaN(fy) {
			broken = true
			continue
		}
		px, py := int(math.Round(fx*float64(width))), int(math.Round((1-fy)*float64(height)))
		if broken {
			lastX, lastY = px, py
		}
		c.line(lastX, lastY, px, py, index)
		if len(s.Y) == 1 {
			c.marks[py/4*c.columns+px/2] = '●'
		}
		lastX, lastY, broken = px, py, false
	}
}

// line sets the dots from one to another.
func (c *canvas) line(x0, y0, x1, y1, index int) {
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		c.dot(x0+int(math.Round(t*float64(x1-x0))), y0+int(math.Round(t*float64(y1-y0))), index)
	}
}

func abs(n int) int { return max(n, -n) }

// brailleBits are the bits of the dots of a character, by row and column (Unicode, U+2800).
var brailleBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (c *canvas) dot(x, y, index int) {
	i := y/4*c.columns + x/2
	c.dots[i] |= brailleBits[y%4][x%2]
	c.colors[i] = int8(index % len(ansi))
	if !c.color && index > 0 {
		c.marks[i] = marks[index%len(marks)]
	}
}

// row returns one line of the drawing.
func (c *canvas) row(r int) string {
	var b strings.Builder
	last := int8(-1)
	for i := r * c.columns; i < (r+1)*c.columns; i++ {
		if now := c.colors[i]; c.color && now != last {
			b.WriteString(reset)
			if now >= 0 {
				b.WriteString(ansi[now])
			}
			last = now
		}
		switch {
		case c.marks[i] != 0:
			b.WriteRune(c.marks[i])
		case c.dots[i] != 0:
			b.WriteRune(0x2800 + c.dots[i])
		default:
			b.WriteByte(' ')
		}
	}
	if last >= 0 {
		b.WriteString(reset)
	}
	return b.String()
}
