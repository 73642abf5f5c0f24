package vetgo

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// exported are the files with the types of the packages that programs of the tests import, by path.
var exported = sync.OnceValues(func() (map[string]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "fmt", "log", "time", "math", "errors", "os", "sync",
		module+"ckpt", module+"data/digits", module+"metric", module+"optim", module+"prof")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
	}
})

// compiled is a program, and what went wrong with its types.
type compiled struct {
	fset  *token.FileSet
	file  *ast.File
	pkg   *types.Package
	info  *types.Info
	src   []byte
	wrong error
}

var (
	files    = token.NewFileSet()
	imported = sync.OnceValues(func() (types.Importer, error) {
		where, err := exported()
		return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(where[path]) }), err
	})
)

func compile(t testing.TB, name, source string) *compiled {
	t.Helper()
	return compileIn(t, files, name, source)
}

func compileIn(t testing.TB, files *token.FileSet, name, source string) *compiled {
	t.Helper()
	from, err := imported()
	if err != nil {
		t.Fatal(err)
	}
	c := &compiled{fset: files, src: []byte(source), info: newInfo()}
	if c.file, err = parser.ParseFile(files, name, source, parser.ParseComments); err != nil {
		c.wrong = err
		return c
	}
	conf := types.Config{Importer: from, Error: func(err error) { c.wrong = errors.Join(c.wrong, err) }}
	c.pkg, _ = conf.Check("main", files, []*ast.File{c.file}, c.info)
	return c
}

// run are the diagnostics of all rules, in the order of their places.
func (c *compiled) run(t testing.TB) (all []analysis.Diagnostic) {
	t.Helper()
	pass := func(a *analysis.Analyzer) *analysis.Pass {
		return &analysis.Pass{
			Analyzer: a, Fset: c.fset, Files: []*ast.File{c.file}, Pkg: c.pkg, TypesInfo: c.info, ResultOf: map[*analysis.Analyzer]any{},
			Report: func(d analysis.Diagnostic) { all = append(all, d) }, ReadFile: func(string) ([]byte, error) { return c.src, nil },
		}
	}
	p := read(pass(reader))
	for _, a := range Analyzers() {
		at := pass(a)
		at.ResultOf[reader] = p
		if _, err := a.Run(at); err != nil {
			t.Error(err)
		}
	}
	slices.SortStableFunc(all, func(a, b analysis.Diagnostic) int { return int(a.Pos - b.Pos) })
	return all
}

// got are "line rule" of what is found in a program, which must compile.
func got(t *testing.T, name, source string) (all []string) {
	t.Helper()
	c := compile(t, name, source)
	if c.wrong != nil {
		t.Errorf("%s: %v", name, c.wrong)
		return nil
	}
	for _, d := range c.run(t) {
		f := foundOf(name, "R00", position(c.fset.Position(d.Pos).String()), relatedTexts(d), d.Message)
		if f.Title == "" || f.Fix == "" || f.Gain.Text == "" || f.DisprovedBy == "" || f.Confidence == "" {
			t.Errorf("%s:%d: not whole: %+v", name, f.Line, f.Finding)
		}
		all = append(all, fmt.Sprintf("%d %s", f.Line, d.Message[strings.LastIndexByte(d.Message, '[')+1:][:3]))
	}
	slices.Sort(all)
	return all
}

func relatedTexts(d analysis.Diagnostic) (all []string) {
	for _, r := range d.Related {
		all = append(all, r.Message)
	}
	return all
}

// sources are the programs of the tests in testdata, by name.
func sources(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.go")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	return all
}

// TestExamples: each rule finds its broken program and nothing else in it, and nothing in the mended one; both compile.
func TestExamples(t *testing.T) {
	for _, r := range vet.Rules() {
		if has := slices.ContainsFunc(Analyzers(), func(a *analysis.Analyzer) bool { return a.Name == r.ID }); has != r.In.Has(vet.Go) {
			t.Errorf("%s is for %s, and an analyzer of it is there: %v", r.ID, r.In, has)
		}
	}
	vettest.Examples(t, vet.Go, "go", func(r vet.Rule, broken, mended string) {
		for name, source := range map[string]string{"broken": broken, "mended": mended} {
			if d := vettest.Unlike(vettest.Wanted(source), got(t, r.ID+"_"+name+".go", source)); d != "" {
				t.Errorf("%s, %s: wanted, got:\n%s", r.ID, name, d)
			}
			if f, err := format.Source([]byte(source)); err != nil || string(f) != source {
				t.Errorf("%s, %s: not as gofmt has it: %v", r.ID, name, err)
			}
		}
	})
}

// TestPrograms: what is planted is found, and what is near to it is not.
func TestPrograms(t *testing.T) {
	var all []string
	for name, source := range sources(t) {
		if d := vettest.Unlike(vettest.Wanted(source), got(t, name, source)); d != "" {
			t.Errorf("%s: wanted, got:\n%s", name, d)
		}
		all = append(all, source)
	}
	vettest.Examples(t, vet.Go, "go", func(_ vet.Rule, broken, _ string) { all = append(all, broken) })
	vettest.Enough(t, vet.Go, all, 3, 3)
}

// TestFixes: a program compiles when fixes are written into it, each alone and all together, and a finding that was mended is gone.
func TestFixes(t *testing.T) {
	programs := sources(t)
	programs["line.go"] = oneLine
	vettest.Examples(t, vet.Go, "go", func(r vet.Rule, broken, _ string) { programs[r.ID+"_broken.go"] = broken })
	fixed := map[string]int{}
	for name, source := range programs {
		c := compile(t, name, source)
		if c.wrong != nil {
			t.Errorf("%s: %v", name, c.wrong)
			continue
		}
		r := &runner{pass: analysis.Pass{Fset: c.fset}}
		found, all := c.run(t), map[string][]toldEdit{}
		for _, d := range found {
			for _, fix := range d.SuggestedFixes {
				fixed[d.Category]++
				edits := r.edits(fix)
				take(all, edits, nil)
				left := c.mended(t, apply(source, edits))
				if of(left, d.Category) != of(found, d.Category)-1 {
					t.Errorf("%s: of %d findings %d are left", c.fset.Position(d.Pos), of(found, d.Category), of(left, d.Category))
				}
			}
		}
		c.mended(t, apply(source, all[name]))
	}
	if len(fixed) < 12 {
		t.Errorf("only %d rules have fixes that are mechanical: %v", len(fixed), fixed)
	}
}

// mended are the diagnostics of a program with fixes, which must compile.
func (c *compiled) mended(t *testing.T, source string) []analysis.Diagnostic {
	t.Helper()
	m := compile(t, "mended.go", source)
	if m.wrong != nil {
		t.Errorf("mended: %v\n%s", m.wrong, source)
		return nil
	}
	return m.run(t)
}

// of is how many diagnostics are a rule's.
func of(all []analysis.Diagnostic, rule string) (n int) {
	for _, d := range all {
		if d.Category == rule {
			n++
		}
	}
	return n
}

// oneLine has statements beside others in their lines, which gofmt leaves there.
const oneLine = `package main

import (
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func step(loss *tensor.Tensor, opt optim.Optimizer) bool {
	done := func() bool { loss.Backward(); opt.Discard(); opt.Step(); return true }()
	return done
}

func main() {}
`

// TestManyWays: a value that is made of another in many ways, and functions that are reached on many, are looked at once.
func TestManyWays(t *testing.T) {
	const many = 60 // there are 2 to the 60th ways
	var values, calls strings.Builder
	for i := range many {
		fmt.Fprintf(&values, "\t\tx = x.Add(x)\n")
		fmt.Fprintf(&calls, "func f%d(x *tensor.Tensor) *tensor.Tensor { return f%d(x).Add(f%d(x)) }\n\n", i, i+1, i+1)
	}
	source := `package main

import "github.com/warpline-ml/warpline/tensor"

func main() {
	var kept []*tensor.Tensor
	env := tensor.Best()
	total := env.Zeros(4)
	for range 3 {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			x := env.Ones(4)
` + values.String() + `			kept = append(kept, x, f0(x))
			return x
		})
		total.AddInPlace(f0(total))
	}
}

` + calls.String() + fmt.Sprintf("func f%d(x *tensor.Tensor) *tensor.Tensor { return x }\n", many)
	c := compile(t, "many.go", source)
	if c.wrong != nil {
		t.Fatal(c.wrong)
	}
	c.run(t)
}

// TestSilence: a comment silences its line, or the next one where it stands alone, for the rules that it names.
func TestSilence(t *testing.T) {
	const line = "\tx.Detach()"
	for to, silent := range map[string]bool{
		line:                                     false,
		line + " //warpline:ok V16":              true,
		line + " //warpline:ok result-dropped":   true,
		line + " //warpline:ok v16":              true,
		line + " //warpline:ok R06, V16":         true,
		line + " //warpline:ok R06,V29":          false,
		line + " //warpline:ok":                  true,
		line + " // warpline: ok V16":            true,
		line + " //warpline:ok R06 // not V16":   false,
		line + " // as in warpline:ok V16":       false,
		"\t//warpline:ok V16\n" + line:           true,
		"\tg() //warpline:ok V16\n" + line:       false,
		"\t//warpline:ok V16\n\n" + line:         false,
		line + "\n\t//warpline:ok V16":           false,
		"\t//warpline:ok V16\n" + line + " // a": true,
	} {
		source := strings.Replace(dropping, "\tx.Detach() // a", to, 1)
		c := compile(t, "silence.go", source)
		if c.wrong != nil {
			t.Fatal(c.wrong)
		}
		if found := c.run(t); len(found) != map[bool]int{false: 1}[silent] {
			t.Errorf("%d findings, and silenced: %v in\n%s", len(found), silent, source)
		}
	}
}
