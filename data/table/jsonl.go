package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/advice"
)

// readJSON reads lines of JSON, each an object of texts, numbers, booleans and nulls. A key that a line has not is missing there.
func readJSON(b *builder, raw []byte) error {
	for line := 1; len(raw) > 0; line++ {
		text, rest, _ := bytes.Cut(raw, []byte("\n"))
		raw = rest
		if text = bytes.TrimRight(text, "\r"); len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if !utf8.Valid(text) {
			return b.notUTF8(line, 1, string(text))
		}
		if err := b.object(text, line); err != nil {
			return err
		}
	}
	return nil
}

// object adds a line.
func (b *builder) object(text []byte, line int) error {
	fail := func(d *json.Decoder, err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return advice.Failf("give one whole object in each line", "%s, line %d, column %d: %v", b.t.name, line, d.InputOffset()+1, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if tok, err := d.Token(); err != nil {
		return fail(d, err)
	} else if tok != json.Delim('{') {
		return fail(d, errors.New("the line is no object"))
	}
	seen := make([]bool, len(b.columns))
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail(d, err)
		}
		if seen, err = b.value(d, key.(string), seen, line); err != nil {
			return fail(d, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(d, err)
	}
	if tok, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail(d, fmt.Errorf("%v behind the object", tok))
	}
	for i, c := range b.columns {
		if i >= len(seen) || !seen[i] {
			c.skip()
		}
	}
	b.t.lines = append(b.t.lines, line)
	return nil
}

// value adds what stands behind a key, and marks its column as seen.
func (b *builder) value(d *json.Decoder, key string, seen []bool, line int) ([]bool, error) {
	i, ok := b.t.places[key]
	if !ok {
		i = len(b.columns)
		if err := b.column(key); err != nil {
			return nil, err
		}
	}
	for len(seen) <= i {
		seen = append(seen, false)
	}
	if seen[i] {
		return nil, fmt.Errorf("the key %q comes twice", key)
	}
	seen[i] = true
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	column := int(d.InputOffset()) + 1
	switch v := tok.(type) {
	case nil:
		b.columns[i].skip()
	case string:
		return seen, b.cell(b.columns[i], v, true, line, column)
	case json.Number:
		return seen, b.cell(b.columns[i], v.String(), false, line, column)
	case bool:
		return seen, b.cell(b.columns[i], fmt.Sprint(v), true, line, column)
	default:
		return nil, fmt.Errorf("the value of %q is an array or an object; a table has texts, numbers, booleans and nulls", key)
	}
	return seen, nil
}
