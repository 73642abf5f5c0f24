package vetpy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

// Bounds of the modules that are read with a program, for what of theirs it calls.
const (
	maxModules = 12
	maxLinked  = 256 << 10 // bytes of a module
)

// module is a file of a program: its own, or one that it imports.
type module struct {
	file     string
	from, to int // within the joined source
	line     int // at which it begins there
	body     []pysyntax.Stmt
	scope    *scope
	ran      bool
}

// linked is a program with the modules of the same tree that it imports, joined into one source.
type linked struct {
	*pysyntax.File
	modules []*module
}

// link reads a program with what it imports from files beside it, or of the packages that it belongs to. Only programs that train or
// evaluate are, and none of those that are installed.
func link(name string, source []byte) *linked {
	if !leads(source) || !trains(string(source)) || strings.Contains(filepath.ToSlash(name), "site-packages/") {
		return nil
	}
	joined := bytes.Clone(source)
	all := []*module{{file: name, to: len(source)}}
	for i := 0; i < len(all); i++ { // those found are looked through, too
		m := all[i]
		for _, path := range imports(joined[m.from:m.to]) {
			file := resolve(m.file, path)
			if file == "" || len(all) > maxModules || slices.ContainsFunc(all, func(o *module) bool { return o.file == file }) {
				continue
			}
			other := readModule(file)
			if other == nil {
				continue
			}
			joined = append(joined, '\n')
			all = append(all, &module{file: file, from: len(joined), to: len(joined) + len(other)})
			joined = append(joined, other...)
		}
	}
	if len(all) == 1 {
		return nil
	}
	f, err := pysyntax.Parse(name, joined)
	if err != nil || len(f.Source) != len(joined) {
		return nil // by itself, then
	}
	for _, s := range f.Body {
		at, _ := s.Span()
		for _, m := range all {
			if at >= m.from && at < m.to {
				m.body = append(m.body, s)
			}
		}
	}
	for _, m := range all {
		m.line = bytes.Count(joined[:m.from], []byte("\n")) + 1
	}
	return &linked{File: f, modules: all}
}

// leads tells whether a program does what others may help with.
func leads(source []byte) bool {
	return slices.ContainsFunc([]string{"backward", ".step(", "DataLoader", "no_grad", "optim.", ".eval(", "oader:"}, func(word string) bool { return bytes.Contains(source, []byte(word)) })
}

// modules that were read, by their names: those of which nothing can be told are empty. Many programs of a tree import the same.
var modules sync.Map

// readModule is the source of a module that has to do with PyTorch and can be read by itself; nil of others.
func readModule(name string) []byte {
	if b, ok := modules.Load(name); ok {
		return b.([]byte)
	}
	var source []byte
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() <= maxLinked {
		source, _ = os.ReadFile(name) // a file that cannot be read is none
		if f, err := pysyntax.Parse(name, source); err != nil || !bytes.Equal(f.Source, source) || bytes.IndexByte(source, '\r') >= 0 {
			source = nil
		}
	}
	modules.Store(name, source)
	return source
}

// imports are the modules that a source imports, as from statements and as import have them; of names that may be modules, too.
func imports(source []byte) (all []string) {
	for line := range bytes.Lines(source) {
		statement, _, _ := strings.Cut(string(line), ";")
		words := strings.Fields(statement)
		switch {
		case len(words) >= 4 && words[0] == "from" && words[2] == "import":
			all = append(all, words[1])
			for _, n := range strings.Split(strings.Trim(strings.Join(words[3:], " "), "()"), ",") {
				if n, _, _ = strings.Cut(strings.TrimSpace(n), " "); n != "" {
					all = append(all, strings.TrimSuffix(words[1], ".")+"."+n)
				}
			}
		case len(words) >= 2 && words[0] == "import":
			for _, n := range strings.Split(strings.Join(words[1:], " "), ",") {
				n, _, _ = strings.Cut(strings.TrimSpace(n), " ")
				all = append(all, n)
			}
		}
	}
	return all
}

// resolve is the file of a module as a file imports it, or empty: beside it, or in a folder above that the path begins in.
func resolve(from, path string) string {
	top, _, _ := strings.Cut(path, ".")
	dir := filepath.Dir(from)
	tail := strings.TrimLeft(path, ".")
	if dots := len(path) - len(tail); dots > 0 {
		for range dots - 1 {
			dir = filepath.Join(dir, "..")
		}
		return moduleFile(dir, tail)
	}
	if strings.HasPrefix(top, "torch") || top == "numpy" || top == "os" || top == "sys" {
		return ""
	}
	for range 3 {
		if f := moduleFile(dir, path); f != "" {
			return f
		}
		dir = filepath.Join(dir, "..")
	}
	return ""
}

// moduleFile is the file of a module in a folder, or empty.
func moduleFile(dir, path string) string {
	base := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(path, ".", "/")))
	for _, name := range []string{base + ".py", filepath.Join(base, "__init__.py")} {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return filepath.Clean(name)
		}
	}
	return ""
}

// of is the module in which a place of the joined source lies.
func (l *linked) of(at int) *module {
	for _, m := range slices.Backward(l.modules) {
		if at >= m.from {
			return m
		}
	}
	return l.modules[0]
}

// place is the file of a line of the joined source, "" if that is the program's own, and its line there.
func (l *linked) place(line int) (file string, within int) {
	for i, m := range slices.Backward(l.modules) {
		if line >= m.line && i > 0 {
			return m.file, line - m.line + 1
		}
	}
	return "", line
}

// name names a line for a sentence.
func (l *linked) name(line int) string {
	file, within := l.place(line)
	if file == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("line %d of %s", within, filepath.Base(file))
}

// module runs a module that is imported where a statement stands, if it is one of the program's, and is its names.
func (w *walker) module(at pysyntax.Node, path string) *scope {
	if w.linked == nil {
		return nil
	}
	from, _ := at.Span()
	file := resolve(w.linked.of(from).file, path)
	i := slices.IndexFunc(w.linked.modules, func(m *module) bool { return m.file == file })
	if file == "" || i < 0 {
		return nil
	}
	m := w.linked.modules[i]
	if !m.ran {
		m.ran = true
		m.scope = &scope{vars: map[string]*value{}}
		outer, entered := w.frame, w.entered
		w.frame, w.entered = frame{scope: m.scope}, nil
		w.apart(func() { w.block(m.body) })
		w.frame, w.entered = outer, entered
	}
	return m.scope
}

// foreign tells whether a node lies in a module that the program imports.
func (w *walker) foreign(n pysyntax.Node) bool {
	if w.linked == nil {
		return false
	}
	from, _ := n.Span()
	return w.linked.of(from) != w.linked.modules[0]
}
