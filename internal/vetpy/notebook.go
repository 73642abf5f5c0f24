package vetpy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/vet"
)

// notebook is what of a Jupyter notebook has programs.
type notebook struct {
	Cells []struct {
		Kind   string          `json:"cell_type"`
		Source json.RawMessage `json:"source"` // a text, or lines
	} `json:"cells"`
	Worksheets json.RawMessage `json:"worksheets"` // of version 3, before 2015
}

// CheckNotebook reads the cells of a notebook as one program, and tells of cells and their lines.
func CheckNotebook(name string, data []byte) ([]vet.Found, error) {
	var n notebook
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("%s: not a notebook: %w", name, err)
	}
	if n.Cells == nil {
		return nil, fmt.Errorf("%s: not a notebook of version 4: it has no cells; save it anew with a Jupyter of today", name)
	}
	var program strings.Builder
	var first []int // lines of the program in which cells begin
	for _, c := range n.Cells {
		first = append(first, strings.Count(program.String(), "\n")+1)
		if c.Kind == "code" {
			program.WriteString(plain(text(c.Source)) + "\n")
		}
	}
	found, err := Check(name, []byte(program.String()))
	for i := range found {
		f := &found[i]
		for f.Cell < len(first) && first[f.Cell] <= f.Line {
			f.Cell++
		}
		f.Line -= first[f.Cell-1] - 1
		f.Finding.Line = fmt.Sprintf("%s: cell %d, line %d", name, f.Cell, f.Line)
	}
	return found, err
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

// plain is a cell without what is IPython's: commands of the shell and magics leave a pass.
func plain(cell string) string {
	if strings.HasPrefix(strings.TrimSpace(cell), "%%") {
		return strings.Repeat("\n", strings.Count(cell, "\n"))
	}
	lines := strings.Split(cell, "\n")
	for i, line := range lines {
		t := strings.TrimLeft(line, " \t")
		if t == "" {
			continue
		}
		magic := t[0] == '!' || t[0] == '%' || t[0] == '?' || strings.HasSuffix(strings.TrimSpace(t), "?")
		if _, call, ok := strings.Cut(t, "= "); ok && !magic {
			magic = strings.HasPrefix(call, "!") || strings.HasPrefix(call, "%")
		}
		if magic {
			lines[i] = line[:len(line)-len(t)] + "pass"
		}
	}
	return strings.Join(lines, "\n")
}
