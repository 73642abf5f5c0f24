package render

import (
	"slices"
	"strings"
)

// Table is rows of text under a header, in aligned columns.
type Table struct {
	Header []string // none if empty
	Right  []bool   // columns aligned to the right, as numbers are; the others to the left
	Ends   []bool   // columns of which the ends are kept when they are cut, as of paths; of the others the beginnings
	Rows   [][]string
	Spare  []int // columns to leave out, in this order, while the lines do not fit
}

const gap = "  "

// String lays the table out in at most width columns: spare columns are left out
// and then the widest is cut until the lines fit, down to four columns each, and
// numbers only when all else is. Every line ends with a newline.
func (t Table) String(width int) string {
	t = t.fitting(width)
	rows := t.all()
	widths := columnWidths(rows)
	shrink(widths, t.numbers(), width)
	shrink(widths, nil, width)
	var b strings.Builder
	for i, row := range rows {
		b.WriteString(t.line(row, widths))
		if i == 0 && len(t.Header) > 0 {
			b.WriteString(rule(widths))
		}
	}
	return b.String()
}

// all is the rows with the header, if there is one.
func (t Table) all() [][]string {
	if len(t.Header) == 0 {
		return t.Rows
	}
	return append([][]string{t.Header}, t.Rows...)
}

// fitting is the table without the spare columns that keep its lines from fitting.
func (t Table) fitting(width int) Table {
	var left []int
	for _, spare := range t.Spare {
		if lineWidth(columnWidths(t.without(left).all())) <= width {
			break
		}
		left = append(left, spare)
	}
	return t.without(left)
}

// without is the table without some columns.
func (t Table) without(columns []int) Table {
	out := Table{Header: dropped(t.Header, columns), Right: dropped(t.Right, columns), Ends: dropped(t.Ends, columns)}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, dropped(row, columns))
	}
	return out
}

func dropped[E any](row []E, columns []int) (out []E) {
	for i, e := range row {
		if !slices.Contains(columns, i) {
			out = append(out, e)
		}
	}
	return out
}

// lineWidth is that of a line whose columns have these widths.
func lineWidth(widths []int) int {
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// numbers are the widths of what columns to the right hold under their header.
func (t Table) numbers() []int {
	widths := columnWidths(t.Rows)
	for i := range widths {
		if i >= len(t.Right) || !t.Right[i] {
			widths[i] = 0
		}
	}
	return widths
}

// shrink takes columns off the widest until the line fits, of none more than to
// its least width.
func shrink(widths, least []int, limit int) {
	for total := lineWidth(widths); total > limit; total-- {
		widest := -1
		for i, w := range widths {
			if w > 4 && (i >= len(least) || w > least[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t Table) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(gap)
		}
		if Width(cell) > widths[i] {
			cell = t.cut(i, cell, widths[i])
		}
		if i < len(t.Right) && t.Right[i] {
			b.WriteString(padLeft(cell, widths[i]))
		} else {
			b.WriteString(padRight(cell, widths[i]))
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// cut shortens a cell of a column.
func (t Table) cut(column int, cell string, width int) string {
	if column < len(t.Ends) && t.Ends[column] {
		return truncateFront(cell, width)
	}
	return Truncate(cell, width)
}

func rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.TrimRight(strings.Join(parts, gap), " ") + "\n"
}
