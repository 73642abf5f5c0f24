package vetpy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/pysyntax"
	"github.com/warpline-ml/warpline/internal/vet"
)

// notebook is what of a Jupyter notebook has programs.
type notebook struct {
	Cells []struct {
		Kind   string          `json:"cell_type"`
		Source json.RawMessage `json:"source"` // a text, or lines
	} `json:"cells"`
	Metadata struct {
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

// language is what the cells are written in, in small letters, or empty.
func (n *notebook) language() string {
	if n.Metadata.Language.Name != "" {
		return strings.ToLower(n.Metadata.Language.Name)
	}
	return strings.ToLower(n.Metadata.Kernel.Language)
}

// ErrLanguage is the error of notebooks in other languages.
var ErrLanguage = errors.New("not a notebook in Python")

// CheckNotebook reads the cells of a notebook as one program, and tells of cells and their lines.
func CheckNotebook(name string, data []byte) ([]vet.Found, error) {
	var n notebook
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &n); err != nil {
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) {
			return nil, fmt.Errorf("%s: not a notebook: JSON with a %s at %q", name, other.Value, other.Field)
		}
		return nil, fmt.Errorf("%s: not a notebook: %w", name, err)
	}
	if n.Cells == nil {
		return nil, fmt.Errorf("%s: not a notebook of version 4: it has no cells; save it anew with a Jupyter of today", name)
	}
	if l := n.language(); l != "" && !strings.Contains(l, "python") {
		return nil, fmt.Errorf("%s: %w: its language is %s", name, ErrLanguage, l)
	}
	var program strings.Builder
	var c cells
	line := 1
	for _, cell := range n.Cells {
		c = append(c, line)
		if cell.Kind == "code" {
			source := plain(text(cell.Source)) + "\n"
			program.WriteString(source)
			line += strings.Count(source, "\n")
		}
	}
	f, err := pysyntax.ParseCells(name, []byte(program.String()))
	if bad := (*pysyntax.Error)(nil); errors.As(err, &bad) {
		return nil, fmt.Errorf("%s: %s: %s", name, c.line(bad.At.Line), bad.Message)
	} else if err != nil {
		return nil, err
	}
	found, err := check(f, nil, c.line)
	for i := range found {
		f := &found[i]
		f.Finding.Line = name + ": " + c.line(f.Line)
		f.Cell, f.Line = c.at(f.Line)
	}
	return found, err
}

// cells are the lines of the program in which cells begin.
type cells []int

// at is the cell of a line, from 1, and the line within it.
func (c cells) at(line int) (cell, within int) {
	for cell < len(c) && c[cell] <= line {
		cell++
	}
	return cell, line - c[cell-1] + 1
}

// line names a line.
func (c cells) line(number int) string {
	cell, within := c.at(number)
	return fmt.Sprintf("cell %d, line %d", cell, within)
}

// text is the source of a cell.
func text(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var lines []string
	_ = json.Unmarshal(raw, &lines) // a cell of another form is empty
	return strings.Join(lines, "")
}

// plain is a cell without the magic that stands over it. What that gives to others than Python is left out.
func plain(cell string) string {
	trimmed := strings.TrimLeft(cell, " \t\r\n")
	if !strings.HasPrefix(trimmed, "%%") {
		return cell
	}
	above := strings.Count(cell[:len(cell)-len(trimmed)], "\n")
	first, body, _ := strings.Cut(trimmed, "\n")
	name, _, _ := strings.Cut(strings.TrimSpace(first[2:]), " ")
	switch name {
	case "time", "timeit", "capture", "prun", "memit", "python", "python3":
		return strings.Repeat("\n", above+1) + body
	}
	return strings.Repeat("\n", strings.Count(cell, "\n"))
}
