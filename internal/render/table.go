package render

import "strings"

// Table is rows of text under a header, in aligned columns.
type Table struct {
	Header []string // none if empty
	Right  []bool   // columns aligned to the right, as numbers are; the others to the left
	Rows   [][]string
}

const gap = "  "

// String lays the table out in at most width columns: the widest column is cut
// until the lines fit, down to four columns each, and numbers only when all else
// is. Every line ends with a newline.
func (t Table) String(width int) string {
	rows := t.Rows
	if len(t.Header) > 0 {
		rows = append([][]string{t.Header}, rows...)
	}
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
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > limit; total-- {
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
			cell = Truncate(cell, widths[i])
		}
		if i < len(t.Right) && t.Right[i] {
			b.WriteString(padLeft(cell, widths[i]))
		} else {
			b.WriteString(padRight(cell, widths[i]))
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

func rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, gap) + "\n"
}
