package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/advice"
)

// builder makes a table, cell by cell.
type builder struct {
	Config
	t       *Table
	missing map[string]bool
	begins  [256]bool // what missing cells begin with
	columns []*columnBuilder
}

// columnBuilder makes a column. It holds numbers until a text comes: the texts of what came before are in early, or, of a long
// table, are read a second time.
type columnBuilder struct {
	*Column
	given   bool     // the kind is not inferred
	early   []string // the first cells, as they are written
	codes   map[string]int32
	strange *strange
	late    bool // a text came behind the early cells
}

// strange is a number that is none: it stops a column of numbers, not one of texts.
type strange struct {
	line, column int
	cell         string
}

// kept is how many cells of a column are kept as they are written.
const kept = 1000

func newBuilder(name string, c Config) *builder {
	if c.Missing == nil {
		c.Missing = Missing
	}
	b := &builder{Config: c, t: &Table{name: name, places: map[string]int{}}, missing: map[string]bool{}}
	for _, m := range c.Missing {
		b.missing[m] = true
		if m != "" {
			b.begins[m[0]] = true
		}
	}
	return b
}

// column adds a column. Rows before it have no value there.
func (b *builder) column(name string) error {
	if _, twice := b.t.places[name]; twice {
		return advice.Failf("give each column a name of its own", "%s: two columns are called %q", b.t.name, name)
	}
	if !utf8.ValidString(name) {
		return b.notUTF8(1, 1, name)
	}
	b.t.places[name] = len(b.columns)
	c := &columnBuilder{Column: &Column{Name: name, Kind: Number}, codes: map[string]int32{}}
	if kind, ok := b.Kinds[name]; ok {
		c.Kind, c.given = kind, true
	}
	b.t.columns, b.columns = append(b.t.columns, c.Column), append(b.columns, c)
	for range b.t.lines {
		c.skip()
	}
	return nil
}

// check refuses kinds that are none.
func (c *Config) check() error {
	for name, kind := range c.Kinds {
		if kind != Number && kind != Text {
			return advice.Failf(fmt.Sprintf("give %q or %q", Number, Text), "column %q is to be of kind %q", name, kind)
		}
	}
	return nil
}

// known refuses kinds of columns that are not there.
func (b *builder) known() error {
	for name := range b.Kinds {
		if _, err := b.t.Column(name); err != nil {
			return err
		}
	}
	return nil
}

// notUTF8 names the first byte that is not UTF-8.
func (b *builder) notUTF8(line, column int, cell string) error {
	at := 0
	for at < len(cell) {
		r, n := utf8.DecodeRuneInString(cell[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	if at == len(cell) {
		return nil
	}
	return advice.Failf("it may be Latin-1 or Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 FILE", "%s, line %d, column %d: byte 0x%02x is not UTF-8", b.t.name, line, column+at, cell[at])
}

// cell adds a value to a column. A text is one even if it looks like a number, as JSON's strings are.
func (b *builder) cell(c *columnBuilder, cell string, text bool, line, column int) error {
	if !text && (cell == "" || b.begins[cell[0]]) && b.missing[cell] {
		c.skip()
		return nil
	}
	if c.Kind == Text {
		return b.text(c, cell, line, column)
	}
	v, ok := number(cell)
	switch {
	case text || !ok:
		if c.given {
			return advice.Failf(fmt.Sprintf("correct it, or read the column as %q", Text), "%s, line %d, column %d: %q is no number, in the column %q of numbers", b.t.name, line, column, clip(cell), c.Name)
		}
		return b.turn(c, cell, line, column)
	case math.IsInf(v, 0) || math.IsNaN(v):
		if c.strange == nil {
			c.strange = &strange{line, column, clip(cell)}
		}
		v = 0
	}
	c.keep(cell)
	c.numbers = append(c.numbers, v)
	return nil
}

// keep remembers a cell as it is written, while the table is short.
func (c *columnBuilder) keep(cell string) {
	if len(c.early) < kept && !c.given {
		c.early = append(c.early, strings.Clone(cell))
	}
}

// turn makes a column of numbers one of texts. Numbers behind the early cells are read again, with the kind that is known then.
func (b *builder) turn(c *columnBuilder, cell string, line, column int) error {
	c.Kind, c.strange = Text, nil
	early, before := c.early, c.numbers
	c.early, c.numbers = nil, nil
	c.late = len(before) > len(early)
	for i, v := range before {
		switch {
		case math.IsNaN(v):
			c.Column.codes = append(c.Column.codes, -1)
		case i < len(early):
			c.add(early[i])
		default:
			c.Column.codes = append(c.Column.codes, -1) // to be read again
		}
	}
	return b.text(c, cell, line, column)
}

func (b *builder) text(c *columnBuilder, cell string, line, column int) error {
	if !utf8.ValidString(cell) {
		return b.notUTF8(line, column, cell)
	}
	if strings.ContainsRune(cell, 0) {
		return advice.Failf("it may be a binary file, or UTF-16: iconv -f UTF-16 -t UTF-8 FILE", "%s, line %d, column %d: a cell has a byte 0", b.t.name, line, column)
	}
	c.add(cell)
	return nil
}

func (c *columnBuilder) add(cell string) {
	code, ok := c.codes[cell]
	if !ok {
		code = int32(len(c.texts))
		cell = strings.Clone(cell) // not the line that it is cut from
		c.codes[cell] = code
		c.texts = append(c.texts, cell)
	}
	c.Column.codes = append(c.Column.codes, code)
}

// skip adds a row without a value.
func (c *columnBuilder) skip() {
	if c.Kind == Text {
		c.Column.codes = append(c.Column.codes, -1)
		return
	}
	c.keep("")
	c.numbers = append(c.numbers, math.NaN())
}

// number is a decimal number. It takes what strconv takes, but for hexadecimal digits and underscores; a number beyond float64 is
// infinite.
func number(cell string) (v float64, ok bool) {
	if v, ok := short(cell); ok {
		return v, true
	}
	s := strings.TrimSpace(cell)
	if s == "" || strings.ContainsAny(s, "xX_pP") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// short is a number of up to 15 digits without exponent: digits and the power of ten are exact in float64, so that one division
// rounds as it should (Clinger, 1990).
func short(s string) (float64, bool) {
	negative := s != "" && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) > 16 {
		return 0, false
	}
	digits, mantissa, behind := 0, 0, -1
	for i := range len(s) {
		switch d := s[i] - '0'; {
		case d < 10:
			mantissa = 10*mantissa + int(d)
			digits++
		case s[i] == '.' && behind < 0:
			behind = digits
		default:
			return 0, false
		}
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	v := float64(mantissa)
	if behind >= 0 {
		v /= tens[digits-behind]
	}
	if negative {
		v = -v
	}
	return v, true
}

var tens = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// again are the columns that turned out late to be texts: the table is to be read again with their kinds.
func (b *builder) again() (Config, bool) {
	c := b.Config
	kinds := map[string]Kind{}
	for name, k := range c.Kinds {
		kinds[name] = k
	}
	late := false
	for _, col := range b.columns {
		if col.late {
			kinds[col.Name], late = Text, true
		}
	}
	c.Kinds = kinds
	return c, late
}

// finish is the table.
func (b *builder) finish() (*Table, error) {
	if err := b.known(); err != nil {
		return nil, err
	}
	if b.t.Len() == 0 || len(b.columns) == 0 {
		return nil, advice.Failf("give a file with at least one row of values", "%s has no rows of values", b.t.name)
	}
	for _, c := range b.columns {
		if s := c.strange; s != nil {
			return nil, advice.Failf("correct it, leave the cell empty, or read the column as "+string(Text), "%s, line %d, column %d: %q is no finite float64, in the column %q of numbers", b.t.name, s.line, s.column, s.cell, c.Name)
		}
		if c.Kind == Text {
			c.Column.texts = slices.Clip(c.texts)
		}
	}
	return b.t, nil
}
