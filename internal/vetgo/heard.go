package vetgo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/vet"
)

// heard is what go vet has said.
type heard struct {
	request Request
	asked   *list
	read    map[string]bool        // packages that the rules have read
	found   map[string][]vet.Found // by file
	wrong   map[string]string      // why packages, these or others, could not be read
	failed  []Unread
}

// diagnostic is the JSON of go vet that is needed here.
type diagnostic struct {
	Posn    string
	Message string
	Fixes   []struct{} `json:"suggested_fixes"`
	Related []struct{ Posn, Message string }
}

// findings takes what the rules say of the packages that are asked. From its cache, go vet also tells of what these import, where that
// was asked once.
func (h *heard) findings(stdout []byte) error {
	for d := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var packages map[string]map[string]json.RawMessage
		if err := d.Decode(&packages); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("what go vet says: %w", err)
		}
		for id, rules := range packages {
			path := baseOf(id)
			if !slices.ContainsFunc(h.asked.sound, func(p *listed) bool { return p.ImportPath == path }) {
				continue
			}
			h.read[path] = true
			for rule, raw := range rules {
				h.rule(path, rule, raw)
			}
		}
	}
}

// rule takes what a rule says of a package, once: with its tests, a package is there twice.
func (h *heard) rule(path, rule string, raw json.RawMessage) {
	var all []diagnostic
	if err := json.Unmarshal(raw, &all); err != nil {
		failure := toldFailure{string(raw)}
		_ = json.Unmarshal(raw, &failure) // what is no failure is told as it is
		h.failed = append(h.failed, Unread{path, fmt.Errorf("%s: %s: %s", path, rule, failure.Error)})
	}
	for _, one := range all {
		at := position(one.Posn)
		f := one.found(rule, at)
		if !slices.ContainsFunc(h.found[at.file], func(o vet.Found) bool { return o.Rule == f.Rule && o.Line == f.Line && o.Column == f.Column }) {
			h.found[at.file] = append(h.found[at.file], f)
		}
	}
}

// complaints takes what go vet says of packages that it could not read: sections that begin with # and the package's name, of which
// the first line is kept.
func (h *heard) complaints(stderr []byte) {
	path := ""
	for line := range strings.Lines(string(stderr)) {
		text := strings.TrimSpace(line)
		switch name, begins := strings.CutPrefix(text, "# "); {
		case text == "" || strings.HasPrefix(text, "go: downloading") || strings.HasPrefix(text, "exit status"):
		case begins:
			path = baseOf(strings.Trim(name, "[]"))
		case h.wrong[path] == "":
			h.wrong[path] = h.request.placed(strings.TrimPrefix(text, "vet: "))
		case path == "":
			h.wrong[path] += " " + text
		}
	}
}

// answer sums up.
func (h *heard) answer(a *Answer) {
	var whole, silent []string
	for _, p := range h.asked.sound {
		if h.read[p.ImportPath] {
			a.Packages++
		}
		switch why := h.why(p); {
		case why == "" && h.read[p.ImportPath]:
			whole = append(whole, p.ImportPath)
		case why == "":
			silent = append(silent, p.ImportPath)
		default:
			a.Unread = append(a.Unread, Unread{h.request.nameOf(p.ImportPath), h.request.explained(p.ImportPath, &listError{Err: why})})
		}
	}
	if len(silent) > 0 {
		why := cmp.Or(h.wrong[""], "go vet says nothing of "+strings.Join(silent, ", "))
		a.Unread = append(a.Unread, Unread{"go vet", advice.Failf("what the go command says; it must be able to build what is to be read", "%s", why)})
	}
	if len(a.Unread) > 0 {
		a.args = whole
	}
	a.Unread = append(a.Unread, h.failed...)
	sorting.By(a.Unread, func(a, b Unread) int { return strings.Compare(a.Name, b.Name) })
	for file, found := range h.found {
		sorting.By(found, func(a, b vet.Found) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Rule, b.Rule)) })
		a.Files = append(a.Files, vet.InFile{File: shown(file), Found: found})
	}
	sorting.By(a.Files, func(a, b vet.InFile) int { return strings.Compare(a.File, b.File) })
}

// why is the reason for which a package, or its tests, could not be read, as far as go vet has said it.
func (h *heard) why(p *listed) string {
	if why := h.wrong[p.ImportPath]; why != "" || h.read[p.ImportPath] {
		return why
	}
	for _, d := range p.Deps {
		if why := h.wrong[d]; why != "" {
			return fmt.Sprintf("it imports %s, which does not compile: %s", d, why)
		}
	}
	return ""
}

func (d diagnostic) found(rule string, at place) vet.Found {
	var parts []string
	for _, r := range d.Related {
		if text, ok := strings.CutPrefix(r.Message, partAlso); ok {
			r.Message = fmt.Sprintf("%s%s: %s", partAlso, position(r.Posn), text)
		}
		parts = append(parts, r.Message)
	}
	f := foundOf(shown(at.file), rule, at, parts, d.Message)
	f.Mechanical = len(d.Fixes) > 0
	line := sourceLine(at)
	f.Source = strings.TrimSpace(line)
	f.Column = utf8.RuneCountInString(line[:min(max(at.column-1, 0), len(line))]) + 1
	return f
}

// foundOf is the finding of a diagnostic's texts.
func foundOf(name, rule string, at place, parts []string, message string) vet.Found {
	f := vet.Found{Line: at.line, Column: at.column}
	if r, ok := vet.Find(rule); ok {
		f.Rule, f.Name, f.More = r.ID, r.Name, r.Why
	}
	if i := strings.LastIndex(message, " ["); i >= 0 {
		message = message[:i]
	}
	f.Title, f.Finding.Line = message, fmt.Sprintf("%s:%d", name, at.line)
	for _, p := range parts {
		if text, ok := strings.CutPrefix(p, partFix); ok {
			f.Fix = text
		} else if text, ok := strings.CutPrefix(p, partGain); ok {
			text, sure, _ := strings.Cut(text, partSure)
			f.Gain.Text, f.DisprovedBy, _ = strings.Cut(text, partUnless)
			f.Confidence = finding.Confidence(sure)
		} else if text, ok := strings.CutPrefix(p, partAlso); ok {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: text})
		}
	}
	return f
}

// place is a place in a file.
type place struct {
	file         string
	line, column int
}

// String is the file by its last name, and the line.
func (p place) String() string { return fmt.Sprintf("%s:%d", filepath.Base(p.file), p.line) }

// position takes file:line:column apart. Files of Windows have a colon of their own.
func position(posn string) (p place) {
	p.file = posn
	for _, n := range []*int{&p.column, &p.line} {
		i := strings.LastIndexByte(p.file, ':')
		v, err := strconv.Atoi(p.file[i+1:])
		if i < 0 || err != nil {
			return p
		}
		p.file, *n = p.file[:i], v
	}
	return p
}

// shown is a file's name as people see it: from here, where it is below.
func shown(file string) string {
	wd, err := os.Getwd()
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(wd, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

func sourceLine(at place) string {
	data, err := os.ReadFile(at.file)
	if err != nil {
		return ""
	}
	lines := strings.Split(string(data), "\n")
	if at.line < 1 || at.line > len(lines) {
		return ""
	}
	return lines[at.line-1]
}
