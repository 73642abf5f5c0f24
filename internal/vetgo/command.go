package vetgo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/vet"
)

// IsAsked tells whether a program is started by go vet as its tool: asked for its version or its flags, or with the description
// of a package as its last argument.
func IsAsked(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	asks := last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
	return asks && !slices.ContainsFunc(args[:len(args)-1], func(a string) bool { return !strings.HasPrefix(a, "-") })
}

// Request is what Check reads.
type Request struct {
	Tool     string   // the program that serves: this one
	Dir      string   // from where patterns are meant
	Patterns []string // of packages, or files of one
	Skip     []string // rules, by id
}

// Answer is what was found in packages.
type Answer struct {
	Files    []vet.InFile // that have findings, in the order of their names
	Packages int          // that were read
	Unread   []error      // why others were not
}

// Findings is how many there are.
func (a *Answer) Findings() int { return a.count(func(vet.Found) bool { return true }) }

// Mechanical is how many of them go vet -fix can mend.
func (a *Answer) Mechanical() int { return a.count(func(f vet.Found) bool { return f.Mechanical }) }

func (a *Answer) count(is func(vet.Found) bool) (n int) {
	for _, f := range a.Files {
		for _, one := range f.Found {
			if is(one) {
				n++
			}
		}
	}
	return n
}

// HasPackages tells whether a folder has programs in Go and belongs to a module.
func HasPackages(dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for up := abs; ; up = filepath.Dir(up) {
		if _, err := os.Stat(filepath.Join(up, "go.mod")); err == nil {
			break
		}
		if up == filepath.Dir(up) {
			return false
		}
	}
	has := false
	err = filepath.WalkDir(abs, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != abs && (vet.Ignored(d.Name()) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_") || isModule(name)):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(name, ".go"):
			has = true
			return filepath.SkipAll
		}
		return nil
	})
	return has && err == nil
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// Check runs go vet over packages, with this program as its tool, and reads what it says. The error is of go vet as a whole.
func Check(ctx context.Context, r Request) (*Answer, error) {
	stdout, stderr, err := r.run(ctx, "-json")
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	dirs := r.folders(ctx)
	if err := a.read(stdout, dirs); err != nil {
		return nil, err
	}
	a.Unread = append(a.Unread, unread(stderr)...)
	a.Packages = max(len(dirs)-len(a.Unread), 0)
	return a, nil
}

// folders are those of the packages that are asked. go vet's cache also tells of what these import, where that was asked once.
func (r Request) folders(ctx context.Context) map[string]bool {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-f", "{{.Dir}}"}, r.Patterns...)...)
	cmd.Dir = r.Dir
	out, _ := cmd.Output() // what is wrong with the patterns, go vet has said
	dirs := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		dirs[filepath.Clean(strings.TrimSpace(line))] = true
	}
	return dirs
}

// Fix has go vet write the fixes that are mechanical into the files.
func Fix(ctx context.Context, r Request) error {
	_, stderr, err := r.run(ctx, "-fix")
	if err == nil {
		err = errors.Join(unread(stderr)...)
	}
	return err
}

// run runs go vet. It ends with an error where packages cannot be read, which the standard error then names.
func (r Request) run(ctx context.Context, flag string) (stdout, stderr []byte, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, nil, advice.Failf("install Go from go.dev/dl, or put it in PATH", "programs in Go are read by way of go vet, and the go command is not there")
	}
	// With trimmed paths, findings of the same package in another folder would be replayed, with that folder's files.
	args := []string{"vet", "-trimpath=false", "-vettool=" + r.Tool, flag}
	for _, id := range r.Skip {
		args = append(args, "-"+id+"=false")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, r.Patterns...)...)
	cmd.Dir = r.Dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && said.Len() > 0 {
		err = nil // stderr says what it is about
	}
	return out.Bytes(), said.Bytes(), err
}

// diagnostic is the JSON of go vet that is needed here.
type diagnostic struct {
	Posn    string
	Message string
	Fixes   []struct{} `json:"suggested_fixes"`
	Related []struct{ Posn, Message string }
}

// read takes the findings of the packages in some folders.
func (a *Answer) read(stdout []byte, dirs map[string]bool) error {
	files := map[string][]vet.Found{}
	for d := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var packages map[string]map[string]json.RawMessage
		if err := d.Decode(&packages); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("what go vet says: %w", err)
		}
		for name, rules := range packages {
			for rule, raw := range rules {
				var all []diagnostic
				if err := json.Unmarshal(raw, &all); err != nil {
					failure := toldFailure{string(raw)}
					_ = json.Unmarshal(raw, &failure) // what is no failure is told as it is
					a.Unread = append(a.Unread, fmt.Errorf("%s: %s: %s", name, rule, failure.Error))
				}
				for _, one := range all {
					if at := position(one.Posn); dirs[filepath.Dir(at.file)] {
						files[at.file] = append(files[at.file], one.found(rule, at))
					}
				}
			}
		}
	}
	for file, found := range files {
		sorting.By(found, func(a, b vet.Found) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Rule, b.Rule)) })
		a.Files = append(a.Files, vet.InFile{File: shown(file), Found: found})
	}
	sorting.By(a.Files, func(a, b vet.InFile) int { return strings.Compare(a.File, b.File) })
	return nil
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
	f.Source = sourceLine(at)
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
	return strings.TrimSpace(lines[at.line-1])
}

// unread are the packages that go vet could not read, of what it says: sections that begin with # and the package's name, or lines.
func unread(stderr []byte) (all []error) {
	var name string
	for line := range strings.Lines(string(stderr)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "go: downloading") || strings.HasPrefix(line, "exit status"):
		case strings.HasPrefix(line, "# "):
			name = strings.TrimPrefix(line, "# ")
		case name != "":
			all = append(all, fmt.Errorf("%s: %s", name, strings.TrimPrefix(line, "vet: ")))
			name = ""
		case len(all) == 0 || !strings.HasPrefix(line, "\t"):
			all = append(all, errors.New(line))
		}
	}
	return all
}
