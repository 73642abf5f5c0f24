// Package vetinput finds the programs that the arguments of a vet name, and reads those in Python.
package vetinput

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vetgo"
	"github.com/warpline-ml/warpline/internal/vetpy"
)

// Stdin is the name that reads the standard input.
const Stdin = "-"

// Input is what arguments ask for, by language.
type Input struct {
	Python   []string        // programs and notebooks, or Stdin
	Found    map[string]bool // those that a folder has, and that nobody has named
	Packages []vetgo.Request
	Refused  []vetgo.Unread // arguments that are neither
	Empty    []string       // folders without programs
	Loose    []string       // folders with programs in Go that belong to no module, and others

	seen map[string]bool // what Python has
}

// Sort tells Python and Go apart. Files go by their ends, or by a first line that names Python. A folder is looked through for
// programs in Python, and read as the packages below it where it belongs to a module of Go. All else names packages.
func Sort(args []string) *Input {
	p := &Input{Found: map[string]bool{}, seen: map[string]bool{}}
	for _, a := range args {
		for _, name := range expanded(a) {
			p.add(name)
		}
	}
	return p
}

// expanded are the names that a pattern matches, for shells that leave that to programs; or the argument itself.
func expanded(arg string) []string {
	if _, err := os.Lstat(arg); err == nil {
		return []string{arg}
	}
	names, err := filepath.Glob(arg)
	if err != nil || len(names) == 0 {
		return []string{arg}
	}
	return names
}

// Nothing is the error of folders, or of files in them, among which is nothing to read.
func Nothing(names []string) error {
	return advice.Failf("name a program, a notebook, packages of Go, or a folder that has some", "%s has no programs in Python or Go", strings.Join(names, ", "))
}

func (p *Input) add(arg string) {
	info, err := os.Stat(arg)
	base, below := strings.CutSuffix(filepath.ToSlash(arg), "/...")
	switch {
	case arg == Stdin:
		p.python(arg)
	case err == nil && info.IsDir():
		p.folder(arg)
	case err == nil:
		p.file(arg, info.Mode())
	case !errors.Is(err, fs.ErrNotExist):
		p.refuse(arg, err)
	case below && isFolder(base):
		p.Packages = append(p.Packages, vetgo.Request{Dir: base, Patterns: []string{"./..."}})
	case isPackage(arg):
		p.Packages = append(p.Packages, vetgo.Request{Patterns: []string{arg}})
	default:
		p.refuse(arg, missing(arg))
	}
}

func (p *Input) refuse(name string, err error) {
	p.Refused = append(p.Refused, vetgo.Unread{Name: name, Err: err})
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// isPackage tells whether what is no file may name a package: a path of imports, and not one of files.
func isPackage(arg string) bool {
	if strings.HasPrefix(arg, ".") || filepath.IsAbs(arg) || strings.HasSuffix(arg, "/") || vetpy.IsProgram(arg) || strings.HasSuffix(arg, ".go") {
		return false
	}
	_, err := exec.LookPath("go")
	return err == nil || strings.Contains(arg, "...")
}

// missing is the error of a name of nothing, which may have been meant for another.
func missing(name string) error {
	dir, base := filepath.Split(filepath.Clean(name))
	var names []string
	entries, _ := os.ReadDir(cmp.Or(dir, ".")) // a folder that is not there has none
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return advice.Failf(advice.Meant(base, names)+"name programs, notebooks, packages or folders that are there", "%s: no such file or folder", name)
}

// file adds one by its language.
func (p *Input) file(name string, mode fs.FileMode) {
	switch {
	case !mode.IsRegular():
		p.refuse(name, advice.Failf("- reads a program in Python from the standard input", "%s: not a file", name))
	case strings.HasSuffix(name, ".go"):
		p.program(name)
	case vetpy.IsProgram(name) || vetpy.IsScript(name):
		p.python(name)
	default:
		p.refuse(name, advice.Failf("warpline diagnose reads logs, traces and snapshots", "%s: not Python, a notebook or Go", name))
	}
}

// python adds one in Python, and tells whether it was not there before: it is read once, however often it is named.
func (p *Input) python(name string) bool {
	if clean := filepath.Clean(name); !p.seen[clean] {
		p.seen[clean] = true
		p.Python = append(p.Python, name)
		return true
	}
	return false
}

// program adds one in Go, to the others of its folder.
func (p *Input) program(name string) {
	dir, base := filepath.Dir(name), filepath.Base(name)
	if i := slices.IndexFunc(p.Packages, func(q vetgo.Request) bool { return q.Dir == dir && len(q.Files) > 0 }); i >= 0 {
		p.Packages[i].Files = append(p.Packages[i].Files, base)
		return
	}
	p.Packages = append(p.Packages, vetgo.Request{Dir: dir, Files: []string{base}})
}

// folder adds what lies below one.
func (p *Input) folder(dir string) {
	before, has := len(p.Packages)+len(p.Refused), false
	var programs []string
	vet.Walk(dir, func(name string) {
		switch {
		case strings.HasSuffix(name, ".go"):
			programs = append(programs, name)
		case vetpy.IsProgram(name):
			if has = true; p.python(name) {
				p.Found[name] = true
			}
		}
	}, func(err error) { p.refuse(dir, err) })
	roots, loose := vetgo.Roots(dir, programs)
	for _, root := range roots {
		p.Packages = append(p.Packages, vetgo.Request{Dir: root, Patterns: []string{"./..."}})
	}
	switch nothing := !has && len(p.Packages)+len(p.Refused) == before; {
	case loose && nothing:
		p.refuse(dir, advice.Failf("make a module there: go mod init example.com/mine, then go mod tidy", "%s: its programs in Go belong to no module", dir))
	case loose:
		p.Loose = append(p.Loose, dir)
	case nothing:
		p.Empty = append(p.Empty, dir)
	}
}

// Named is a package that could not be read, where it was none as what was named: a name of nothing.
func Named(u vetgo.Unread) vetgo.Unread {
	if errors.Is(u.Err, vetgo.ErrNoPackage) && !strings.Contains(u.Name, "...") && !isFolder(u.Name) {
		u.Err = missing(u.Name)
	}
	return u
}
