// Package table reads tables (CSV, TSV, JSON lines) and makes of their rows what a model learns from.
//
//	t, err := table.Open("prices.csv", table.Config{})
//	train, test, err := t.Split(0.8, 1)
//	enc, err := table.Fit(t, train, table.Encoding{Target: "price"})
//	set, err := enc.Source(t, train)
//
// A column holds numbers or texts, of which some may be missing. Everything that is learned of columns (means, deviations, which
// texts there are) comes from the rows given to [Fit], and goes with the [Encoder] to other tables.
package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Kind is what a column holds.
type Kind string

// The kinds.
const (
	Number Kind = "number"
	Text   Kind = "text" // categories
)

// Missing are the cells that stand for no value: those of pandas, and the empty one.
var Missing = []string{"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}

// Config says how to read a table. The zero value takes the types from the cells.
type Config struct {
	Comma    rune            // between cells; 0: a tab for names that end in .tsv or .tab, otherwise a comma
	NoHeader bool            // the first line is a row: columns are called "column 1" and so on
	Kinds    map[string]Kind // of columns where they are not to be inferred
	Missing  []string        // in place of [Missing]; JSON has null besides
}

// Table is the rows of a file by columns. It may be used by several goroutines at once.
type Table struct {
	name    string
	columns []*Column
	places  map[string]int
	lines   []int // where each row begins
}

// Column is one column of a table.
type Column struct {
	Name string
	Kind Kind

	numbers []float64 // NaN: missing
	codes   []int32   // of texts; -1: missing
	texts   []string  // by code, in order of appearance
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.lines) }

// Columns are the columns in their order.
func (t *Table) Columns() []*Column { return t.columns }

// Names are those of the columns.
func (t *Table) Names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.Name
	}
	return names
}

// Column is the column of a name. The error knows similar ones.
func (t *Table) Column(name string) (*Column, error) {
	if i, ok := t.places[name]; ok {
		return t.columns[i], nil
	}
	some := t.Names()
	if len(some) > 20 {
		some = append(some[:20], "…")
	}
	return nil, advice.Failf(advice.Meant(name, t.Names())+"the columns are "+advice.List(some), "%s has no column %q", t.name, name)
}

// Line is where row i begins in the file, counted from 1.
func (t *Table) Line(i int) int { return t.lines[i] }

// IsMissing tells whether row i has no value.
func (c *Column) IsMissing(i int) bool {
	if c.Kind == Number {
		return math.IsNaN(c.numbers[i])
	}
	return c.codes[i] < 0
}

// Stray are the first value of a column of texts that is no number, its row, and how many of its values are none, where all others, ten
// times as many and more, are: a slip has made texts of a column of numbers. It is not ok of other columns.
func (c *Column) Stray() (text string, row, strays int, ok bool) {
	numbers, numeric := 0, make([]bool, len(c.texts))
	for code, text := range c.texts {
		_, numeric[code] = number(text)
	}
	for i, code := range c.codes {
		if code < 0 {
			continue
		}
		if numeric[code] {
			numbers++
		} else if strays++; strays == 1 {
			text, row = c.texts[code], i
		}
	}
	return text, row, strays, strays > 0 && numbers >= 10*strays
}

// Number is the value of row i of a column of numbers, NaN where it is missing.
func (c *Column) Number(i int) float64 { return c.numbers[i] }

// Text is the value of row i as text, empty where it is missing.
func (c *Column) Text(i int) string {
	switch {
	case c.IsMissing(i):
		return ""
	case c.Kind == Number:
		return strconv.FormatFloat(c.numbers[i], 'g', -1, 64)
	}
	return c.texts[c.codes[i]]
}

// Present are the rows that have a value in a column.
func (t *Table) Present(column string) ([]int, error) {
	c, err := t.Column(column)
	if err != nil {
		return nil, err
	}
	var rows []int
	for i := range t.Len() {
		if !c.IsMissing(i) {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// String tells the table's name and size.
func (t *Table) String() string {
	return fmt.Sprintf("%s, %d rows of %d columns", t.name, t.Len(), len(t.columns))
}

// String tells the column's name and kind.
func (c *Column) String() string { return fmt.Sprintf("%s (%v)", c.Name, c.Kind) }

// at names a cell for errors.
func (t *Table) at(row int, column string) string {
	return fmt.Sprintf("%s, line %d, column %q", t.name, t.lines[row], column)
}

// distinct are the texts of some rows, sorted.
func (c *Column) distinct(rows []int) []string {
	seen := map[string]bool{}
	var out []string
	for _, i := range rows {
		if c.IsMissing(i) {
			continue
		}
		if s := c.Text(i); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
