package vetgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// ErrNoPackage is why a pattern that names nothing could not be read.
var ErrNoPackage = errors.New("no packages of Go")

// byFiles is the path that the go command gives to a package of files that are named.
const byFiles = "command-line-arguments"

// listed is what go list tells of a package, or of one with its tests.
type listed struct {
	ImportPath, Dir                              string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Deps                                         []string
	Error                                        *listError
	DepsErrors                                   []*listError
}

// listError is why a package, or what it imports, is not known.
type listError struct{ Pos, Err string }

// list is what patterns name.
type list struct {
	sound  []*listed // without errors, in their order
	bare   []*listed // without errors but for those of their tests
	unread []Unread
}

// firstError is the first that is told of a package itself, or nil.
func (p *listed) firstError() *listError {
	if p.Error == nil && len(p.DepsErrors) > 0 {
		return p.DepsErrors[0]
	}
	return p.Error
}

// paths are those of the packages without errors.
func (l *list) paths() (all []string) {
	for _, p := range l.sound {
		all = append(all, p.ImportPath)
	}
	return all
}

// has tells whether files are among those of the packages.
func (l *list) has(files []string) bool {
	var all []string
	for _, p := range l.sound {
		all = slices.Concat(all, p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
	}
	return !slices.ContainsFunc(files, func(f string) bool { return !slices.Contains(all, f) })
}

// list asks the go command for packages.
func (r Request) list(ctx context.Context, patterns []string) (*list, error) {
	stdout, stderr, err := r.run(ctx, append([]string{"list", "-e", "-test", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Deps,Error,DepsErrors"}, patterns...))
	if err != nil {
		return nil, err
	}
	all, err := decoded(stdout)
	if err != nil {
		return nil, err
	}
	l := &list{}
	l.unmatched(r, stderr)
	switch said := joined(string(stderr)); {
	case len(all) > 0 || len(l.unread) > 0:
	case strings.Contains(said, "no Go source files"):
		l.refuse(r.Name(), advice.Failf(`set CGO_ENABLED=1, with a C compiler there, for programs that import "C"`, "%s: the go command leaves it out here", r.Name()))
	default:
		l.refuse(r.name(patterns[0]), advice.Failf("what the go command says; it must be able to build what is to be read", "%s", said))
	}
	wrong := errorsOf(all)
	for _, p := range all {
		switch e := wrong[p.ImportPath]; {
		case p.ImportPath != baseOf(p.ImportPath) || isTestOf(all, p.ImportPath): // told with the package itself
		case e == nil:
			l.sound = append(l.sound, p)
		case p.Dir == "":
			l.refuse(p.ImportPath, fmt.Errorf("%s: %w: %s", p.ImportPath, ErrNoPackage, joined(e.Err)))
		case p.firstError() == nil && len(r.Files) == 0:
			l.refuse(p.ImportPath, r.explained(p.ImportPath+": its tests", e))
			l.bare = append(l.bare, p)
		default:
			l.refuse(r.nameOf(p.ImportPath), r.explained(p.ImportPath, e))
		}
	}
	return l, nil
}

func (l *list) refuse(name string, err error) { l.unread = append(l.unread, Unread{name, err}) }

func decoded(stdout []byte) (all []*listed, err error) {
	for d := json.NewDecoder(bytes.NewReader(stdout)); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("what go list says: %w", err)
		}
		all = append(all, p)
	}
}

// errorsOf are the first errors of packages, by path; those of their tests, too.
func errorsOf(all []*listed) map[string]*listError {
	wrong := map[string]*listError{}
	for _, p := range all {
		path := baseOf(p.ImportPath)
		if isTestOf(all, path) {
			path = strings.TrimSuffix(path, ".test")
		}
		if wrong[path] == nil {
			wrong[path] = p.firstError()
		}
	}
	return wrong
}

// baseOf is the path of a package by that of it with its tests: "p [p.test]", "p_test [p.test]".
func baseOf(path string) string {
	if _, in, ok := strings.Cut(path, " ["); ok {
		return strings.TrimSuffix(strings.TrimSuffix(in, "]"), ".test")
	}
	return path
}

// isTestOf tells whether a path is that of the program that runs a package's tests.
func isTestOf(all []*listed, path string) bool {
	base, ok := strings.CutSuffix(path, ".test")
	return ok && slices.ContainsFunc(all, func(p *listed) bool { return p.ImportPath == base })
}

// unmatched keeps patterns of which the go command says that there is nothing.
func (l *list) unmatched(r Request, stderr []byte) {
	for line := range strings.Lines(string(stderr)) {
		line, found := strings.CutPrefix(strings.TrimSpace(line), "go: warning: ")
		if pattern, ok := strings.CutSuffix(line, " matched no packages"); ok && found {
			name := r.name(strings.Trim(pattern, `"`))
			l.refuse(name, fmt.Errorf("%s: %w: there are none, or build constraints leave all their files out", name, ErrNoPackage))
		}
	}
}

// name is what people call a pattern.
func (r Request) name(pattern string) string {
	if pattern == "." || pattern == "./..." {
		return shown(filepath.Clean(r.Dir))
	}
	return pattern
}

// nameOf is what people call a package.
func (r Request) nameOf(path string) string {
	if path == byFiles {
		return shown(filepath.Join(r.Dir, r.Files[0]))
	}
	return path
}

// explained is an error that names the package.
func (r Request) explained(path string, e *listError) error {
	text := e.Err
	if e.Pos != "" {
		text = r.placed(e.Pos + ": " + text)
	}
	text = joined(text)
	if path != byFiles {
		text = path + ": " + text
	}
	hint := "what go build says; the others are read all the same"
	if strings.Contains(text, "go.mod file not found") {
		hint = "make a module of the folder: go mod init example.com/mine, then go mod tidy"
	}
	return advice.Failf(hint, "%s", text)
}

// placed is a line of the go command with its file as people see it: the go command has it from the folder in which it runs.
func (r Request) placed(line string) string {
	where, text, ok := strings.Cut(line, ": ")
	at := position(where)
	if !ok || at.column == 0 {
		return line
	}
	file := at.file
	if !filepath.IsAbs(file) {
		file = filepath.Join(r.Dir, file)
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return shown(file) + where[len(at.file):] + ": " + text
}

func joined(text string) string { return strings.Join(strings.Fields(text), " ") }
