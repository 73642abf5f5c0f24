// Package source makes the table of `warpline torch` and docs/pytorch.md from the programs of examples/pytorch and the text
// files of internal/torchcall.
package source

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/torchcall"
)

// Generate gives the files to write, by path, from the root of the repository. It is an error when a name of PyTorch has no
// answer, and when what is told as not here has come.
func Generate(root string) (map[string][]byte, error) {
	here := filepath.Join(root, "internal", "torchcall")
	t, err := read(root, here)
	if err != nil {
		return nil, err
	}
	prose, err := os.ReadFile(filepath.Join(here, "page.md"))
	if err != nil {
		return nil, err
	}
	page, err := writePage(t, string(prose))
	if err != nil {
		return nil, err
	}
	if err := checkStale(t, root); err != nil {
		return nil, err
	}
	text, err := marshal(t)
	return map[string][]byte{filepath.Join(here, "table.json"): text, filepath.Join(root, "docs", "pytorch.md"): []byte(page)}, err
}

// read makes the table.
func read(root, here string) (*torchcall.Table, error) {
	t := &torchcall.Table{Names: map[string]torchcall.Name{}}
	prose, err := os.ReadFile(filepath.Join(here, "page.md"))
	if err != nil {
		return nil, err
	}
	t.Sections = sectionsOf(string(prose))
	if err := readPrograms(t, filepath.Join(root, "examples", "pytorch")); err != nil {
		return nil, err
	}
	n, err := readNames(t, filepath.Join(here, "names.txt"))
	if err != nil {
		return nil, err
	}
	if err := n.fromRows(t); err != nil {
		return nil, err
	}
	if err := n.fromReasons(t, filepath.Join(here, "reasons.txt")); err != nil {
		return nil, err
	}
	if err := n.rest(t); err != nil {
		return nil, err
	}
	return t, readDifferences(t, filepath.Join(here, "differences.txt"))
}

// marshal is the table as JSON with a line for each row and name.
func marshal(t *torchcall.Table) ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	depth := 0
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		b.WriteByte(c)
		switch {
		case inString && c == '\\':
			i++
			b.WriteByte(text[i])
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth == 2 {
				b.WriteByte('\n')
			}
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth <= 2:
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// lines are a file's, without what is empty or begins with #; a line that begins with a space goes on the one before. Each
// begins with its place.
func lines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case line[0] == ' ' && len(list) > 0:
			list[len(list)-1] += " " + strings.TrimSpace(line)
		default:
			list = append(list, line)
		}
	}
	return list, nil
}
