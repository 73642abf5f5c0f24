package machinefile

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// node is a part of what nvidia-smi -q prints, as XML or as text.
type node struct {
	name  string // lower case, words joined by underscores
	value string
	id    string // of a GPU
	parts []*node
}

// Bounds of a file.
const (
	deepest   = 32
	mostNodes = 1 << 18
)

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// wordsOf is a name as paths have it.
func wordsOf(name string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(name), "_"), "_")
}

// at is the part at a path, or nil.
func (n *node) at(path string) *node {
	for _, name := range strings.Split(path, "/") {
		var next *node
		for _, p := range n.parts {
			if p.name == name {
				next = p
				break
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

// all are the parts of a name, in order.
func (n *node) all(name string) (out []*node) {
	for _, p := range n.parts {
		if p.name == name {
			out = append(out, p)
		}
	}
	return out
}

// absent are values that say that there is none. Drivers from 580 on keep old names with such a note.
var absent = regexp.MustCompile(`^(?:\[?N/A\]?|\[?Not Supported\]?|None|Requested functionality has been deprecated|\[Insufficient Permissions\]|)$`)

// note is what newer drivers append to values of deprecated names.
var note = regexp.MustCompile(`\s*(?:\[[^\]]*\]|\((?:[Dd]eprecated|[Ss]ee|[Uu]se)[^)]*\))$`)

// text is the value at the first of paths that has one.
func (n *node) text(paths ...string) (string, bool) {
	for _, path := range paths {
		if p := n.at(path); p != nil {
			if v := strings.TrimSpace(p.value); !absent.MatchString(v) {
				if v = note.ReplaceAllString(v, ""); v != "" {
					return v, true
				}
			}
		}
	}
	return "", false
}

var leadingNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?`)

// number is the number that a value begins with: "67.03 W" is 67.03.
func (n *node) number(paths ...string) (float64, bool) {
	for _, path := range paths {
		v, ok := n.text(path)
		if !ok {
			continue
		}
		if f, err := strconv.ParseFloat(leadingNumber.FindString(v), 64); err == nil {
			return f, true
		}
	}
	return 0, false
}

// errCut is the end of a file before the end of what it has.
var errCut = errors.New("the file ends early")

// readXML reads documents, one after the other as nvidia-smi -l prints them: what is before a fault, and the fault. Entities
// are not expanded: these files have none.
func readXML(r io.Reader) ([]*node, error) {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8 by now
	top := &node{}
	open := []*node{top}
	for count := 0; ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && len(open) == 1:
			return top.parts, nil
		case err != nil:
			if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "unexpected EOF") {
				err = errCut
			}
			return top.parts, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if count++; count > mostNodes || len(open) > deepest {
				return top.parts, fmt.Errorf("byte %d: more than %d elements, or %d in each other", d.InputOffset(), mostNodes, deepest)
			}
			n := &node{name: wordsOf(t.Name.Local)}
			for _, a := range t.Attr {
				if a.Name.Local == "id" {
					n.id = a.Value
				}
			}
			parent := open[len(open)-1]
			parent.parts = append(parent.parts, n)
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if n := open[len(open)-1]; n != top && len(n.value) < 1024 {
				n.value += string(t)
			}
		}
	}
}

// textRow is a line of nvidia-smi -q: its depth by spaces, a name, and a value behind a colon.
var textRow = regexp.MustCompile(`^(\s*)(.+?)(?:\s+: (.*)|\s*:)?$`)

var gpuRow = regexp.MustCompile(`^GPU ([0-9a-fA-F]{8}:[0-9a-fA-F:.]+)$`)

// readText reads what nvidia-smi -q prints as text. Depth is what spaces say.
func readText(text *reader) ([]*node, error) {
	type level struct {
		spaces int
		*node
	}
	var tops []*node
	var open []level
	count := 0
	err := text.lines(func(_ int, line string) {
		if strings.Contains(line, "NVSMI LOG=") {
			top := &node{name: "nvidia_smi_log"}
			tops, open = append(tops, top), []level{{-1, top}}
			return
		}
		m := textRow.FindStringSubmatch(strings.ReplaceAll(line, "\t", "    "))
		if count++; m == nil || len(open) == 0 || count > mostNodes {
			return
		}
		n := &node{name: wordsOf(m[2]), value: m[3]}
		if g := gpuRow.FindStringSubmatch(strings.TrimSpace(line)); g != nil {
			n = &node{name: "gpu", id: g[1]}
		}
		for len(open) > 1 && open[len(open)-1].spaces >= len(m[1]) || len(open) > deepest {
			open = open[:len(open)-1]
		}
		parent := open[len(open)-1].node
		parent.parts = append(parent.parts, n)
		open = append(open, level{len(m[1]), n})
	})
	return tops, err
}
