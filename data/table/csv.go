package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Open reads a file: JSON lines if it begins with a brace, otherwise CSV, with tabs if its name ends in .tsv or .tab.
func Open(path string, c Config) (*Table, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, raw, c)
}

// Read is [Open] of what a reader gives. The name stands in errors.
func Read(name string, r io.Reader, c Config) (*Table, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return Parse(name, raw, c)
}

// Parse is [Open] of a file's bytes. Cells are as in RFC 4180; lines of other lengths than the first, quotes that are never closed,
// encodings other than UTF-8, names that come twice and numbers that are no finite float64 are errors that name line and column.
func Parse(name string, raw []byte, c Config) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	raw, err := decoded(name, raw)
	if err != nil {
		return nil, err
	}
	if c.Comma == 0 {
		c.Comma = ','
		if lower := strings.ToLower(name); strings.HasSuffix(lower, ".tsv") || strings.HasSuffix(lower, ".tab") {
			c.Comma = '\t'
		}
	}
	read := readCSV
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		read = readJSON
	}
	for {
		b := newBuilder(name, c)
		if err := read(b, raw); err != nil {
			return nil, err
		}
		again, late := b.again()
		if !late {
			return b.finish()
		}
		c = again
	}
}

// decoded is the text without a byte order mark, of which that of UTF-16 is an error.
func decoded(name string, raw []byte) ([]byte, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, advice.Failf("give a file with a line of names and rows of values", "%s is empty", name)
	}
	if len(raw) > 1 && (raw[0] == 0xff && raw[1] == 0xfe || raw[0] == 0xfe && raw[1] == 0xff || raw[0] == 0 || raw[1] == 0) {
		return nil, advice.Failf("iconv -f UTF-16 -t UTF-8 FILE", "%s is UTF-16, not UTF-8", name)
	}
	return raw, nil
}

func readCSV(b *builder, raw []byte) error {
	if c := b.Comma; c == '"' || c == '\r' || c == '\n' || c == utf8.RuneError || !utf8.ValidRune(c) {
		return advice.Failf("give a comma, a semicolon or a tab", "%s: %q cannot stand between cells", b.t.name, c)
	}
	r := csv.NewReader(bytes.NewReader(raw))
	r.Comma, r.ReuseRecord = b.Comma, true
	first, err := r.Read()
	if err != nil {
		return b.explain(err)
	}
	if err := b.header(first); err != nil {
		return err
	}
	if b.NoHeader {
		err = b.row(r, first)
	}
	for err == nil {
		var cells []string
		if cells, err = r.Read(); err == nil {
			err = b.row(r, cells)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return b.explain(err)
}

// header makes the columns.
func (b *builder) header(cells []string) error {
	for i, name := range cells {
		if name = strings.TrimSpace(name); b.NoHeader || name == "" { // as pandas writes its index
			name = fmt.Sprintf("column %d", i+1)
		}
		if err := b.column(strings.Clone(name)); err != nil {
			return err
		}
	}
	return nil
}

// row adds a line.
func (b *builder) row(r *csv.Reader, cells []string) error {
	for i, cell := range cells {
		line, column := r.FieldPos(i)
		if err := b.cell(b.columns[i], cell, false, line, column); err != nil {
			return err
		}
	}
	line, _ := r.FieldPos(0)
	b.t.lines = append(b.t.lines, line)
	return nil
}

// explain says of an error of the CSV reader what to do.
func (b *builder) explain(err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return advice.Failf(b.otherComma(), "%s, line %d: the number of cells is not that of the first line, %d", b.t.name, p.Line, len(b.columns))
	case errors.Is(err, csv.ErrQuote) && p.StartLine != p.Line || errors.Is(err, csv.ErrQuote) && p.Column <= 1:
		return advice.Failf("close it, and write a quote within quotes as two", "%s, line %d: the row that begins there has a quote that is not closed by line %d", b.t.name, p.StartLine, p.Line)
	}
	return advice.Failf("put a cell that has quotes into quotes, and write each of its own as two", "%s, line %d, column %d: %v", b.t.name, p.Line, p.Column, p.Err)
}

// otherComma is what to do about ragged lines.
func (b *builder) otherComma() string {
	if len(b.columns) == 1 {
		return "give Comma what stands between the cells, such as ';' or a tab"
	}
	return "give each row a cell for each column, an empty one where nothing is known; a cell with a comma goes into quotes"
}
