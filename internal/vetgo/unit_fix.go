package vetgo

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// mend writes the files of a package, with the first fix of each finding, into an archive from which the go command takes them
// once all packages are read. A fix that overlaps with one before it, or that is of a generated file, is left.
func (r *runner) mend(archive string) error {
	mended := map[string][]toldEdit{}
	var failed []error
	generated := r.generated()
	for _, s := range r.order {
		failed = append(failed, s.err)
		for _, d := range s.found {
			if len(d.SuggestedFixes) > 0 {
				take(mended, r.edits(d.SuggestedFixes[0]), generated)
			}
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return r.pack(archive, mended)
}

// generated are the names of the package's files that programs have written.
func (r *runner) generated() map[string]bool {
	names := map[string]bool{}
	for _, f := range r.pass.Files {
		if ast.IsGenerated(f) {
			names[r.pass.Fset.File(f.FileStart).Name()] = true
		}
	}
	return names
}

// take adds a fix to the edits of files, as a whole or not at all.
func take(all map[string][]toldEdit, fix []toldEdit, generated map[string]bool) {
	for _, e := range fix {
		overlaps := func(o toldEdit) bool { return o != e && o.Start < e.End && e.Start < o.End }
		if generated[e.Filename] || slices.ContainsFunc(all[e.Filename], overlaps) {
			return
		}
	}
	for _, e := range fix {
		if !slices.Contains(all[e.Filename], e) {
			all[e.Filename] = append(all[e.Filename], e)
		}
	}
}

// pack writes an archive of mended files.
func (r *runner) pack(archive string, mended map[string][]toldEdit) error {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(mended)) {
		text, err := r.edited(name, mended[name])
		if err != nil {
			return err
		}
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, buf.Bytes(), 0o666)
}

// edited is a file with edits, which must still be Go, as gofmt has it where gofmt is there.
func (r *runner) edited(name string, edits []toldEdit) ([]byte, error) {
	source, err := r.pass.ReadFile(name)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, f := range r.pass.Files {
		if file := r.pass.Fset.File(f.FileStart); file.Name() == name {
			size = file.Size()
		}
	}
	if len(source) != size {
		return nil, fmt.Errorf("%s has changed while it was read", name)
	}
	text := apply(string(source), edits)
	if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("fixes do not go together: %w", err)
	}
	cmd := exec.Command("gofmt")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.Output(); err == nil {
		return out, nil
	}
	return []byte(text), nil
}

// apply puts edits into a text. Of those at one place, insertions come first, in their order.
func apply(source string, edits []toldEdit) string {
	edits = slices.Clone(edits)
	sorting.By(edits, func(a, b toldEdit) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(source[at:e.Start])
		b.WriteString(e.New)
		at = e.End
	}
	b.WriteString(source[at:])
	return b.String()
}
