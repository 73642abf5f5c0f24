package vetgo

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/gcexportdata"
)

// unit is what the go command writes of a package for its tool to read, into a file that ends with .cfg.
type unit struct {
	ID                        string
	Compiler                  string
	ImportPath                string
	GoVersion                 string
	GoFiles                   []string
	NonGoFiles                []string
	IgnoredFiles              []string
	ImportMap                 map[string]string // paths of packages, by what import declarations say
	PackageFile               map[string]string // compiled packages, by their paths
	VetxOnly                  bool              // only what packages that import this one want to know of it is asked: nothing, here
	VetxOutput                string            // where that goes
	Stdout                    string            // where the JSON goes
	FixArchive                string            // where mended files go
	SucceedOnTypecheckFailure bool
}

// Exit statuses of a tool of go vet.
const (
	unitDone   = 0
	unitFound  = 1
	unitFailed = 2
)

// Serve does what go vet asks of its tool, and ends the process.
func Serve() { os.Exit(serve(os.Args[1:], os.Stdout, os.Stderr)) }

func serve(args []string, stdout, stderr io.Writer) int {
	status, err := unitDone, error(nil)
	switch last := args[len(args)-1]; last {
	case "-V=full":
		err = tellVersion(stdout)
	case "-flags":
		err = tellFlags(stdout)
	default:
		status, err = serveUnit(args, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return unitFailed
	}
	return status
}

// tellVersion says which program this is, so that what another has found is not taken from the go command's cache.
func tellVersion(w io.Writer) error {
	name, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s version devel comments-go-here buildID=%02x\n", name, h.Sum(nil))
	return err
}

// tellFlags says which flags the go command may hand on.
func tellFlags(w io.Writer) error {
	type told struct {
		Name  string
		Bool  bool
		Usage string
	}
	all := []told{{"json", true, "emit JSON output"}, {"files", false, usageFiles}}
	for _, a := range Analyzers() {
		all = append(all, told{a.Name, true, fmt.Sprintf("enable %q analysis", a.Name)})
	}
	return json.NewEncoder(w).Encode(all)
}

const usageFiles = "say what is found in these files alone, by their last names, with commas between them"

// asked is what the flags of a run say.
type asked struct {
	files           []string
	json, fix, diff bool
	rules           map[string]bool // that were named, and whether they shall run
	unit            string          // the file
}

// parse reads flags. Those of rules are -R06, which asks that and others named so alone, and -R06=false.
func parse(args []string, stderr io.Writer) (*asked, error) {
	a := &asked{rules: map[string]bool{}}
	fs := flag.NewFlagSet("warpline", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&a.json, "json", false, "emit JSON output")
	fs.BoolVar(&a.fix, "fix", false, "apply the first fix of each finding")
	fs.BoolVar(&a.diff, "diff", false, "not offered")
	fs.Func("files", usageFiles, func(s string) error {
		a.files = strings.Split(s, ",")
		return nil
	})
	for _, rule := range Analyzers() {
		fs.BoolFunc(rule.Name, rule.Doc, func(s string) (err error) {
			a.rules[rule.Name], err = strconv.ParseBool(s)
			return err
		})
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	a.unit = fs.Arg(0)
	return a, nil
}

// analyzers are the rules that are asked.
func (a *asked) analyzers() (all []*analysis.Analyzer) {
	alone := false
	for _, on := range a.rules {
		alone = alone || on
	}
	for _, rule := range Analyzers() {
		if on, named := a.rules[rule.Name]; on || !named && !alone {
			all = append(all, rule)
		}
	}
	return all
}

// serveUnit runs the rules over a package.
func serveUnit(args []string, stdout, stderr io.Writer) (int, error) {
	a, err := parse(args, stderr)
	if err != nil {
		return unitFailed, err
	}
	u, err := readUnit(a.unit)
	if err != nil {
		return unitFailed, err
	}
	if u.VetxOutput != "" {
		if err := os.WriteFile(u.VetxOutput, nil, 0o666); err != nil { // that it is there lets the go command remember the run
			return unitFailed, err
		}
	}
	if u.VetxOnly {
		return unitDone, nil
	}
	r, err := u.load()
	switch {
	case err != nil && u.SucceedOnTypecheckFailure:
		return unitDone, nil
	case err != nil:
		return unitFailed, err
	}
	for _, rule := range a.analyzers() {
		r.run(rule)
	}
	r.only(a.files)
	return r.tell(u, a, stdout, stderr)
}

func readUnit(name string) (*unit, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	u := &unit{}
	if err := json.Unmarshal(data, u); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return u, nil
}

// load reads a package, with its types.
func (u *unit) load() (*runner, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range u.GoFiles {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := newInfo()
	conf := types.Config{
		Importer: u.imports(fset), GoVersion: u.GoVersion,
		Sizes: types.SizesFor(u.Compiler, cmp.Or(os.Getenv("GOARCH"), runtime.GOARCH)),
	}
	pkg, err := conf.Check(u.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}
	return &runner{states: map[*analysis.Analyzer]*state{}, pass: analysis.Pass{
		Fset: fset, Files: files, OtherFiles: u.NonGoFiles, IgnoredFiles: u.IgnoredFiles, Pkg: pkg, TypesInfo: info, TypesSizes: conf.Sizes,
		ReadFile: os.ReadFile,
	}}, nil
}

// newInfo is where all that analyzers may ask of types goes.
func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
	}
}

// importing is a function that imports packages.
type importing func(path string) (*types.Package, error)

// Import imports a package.
func (f importing) Import(path string) (*types.Package, error) { return f(path) }

// imports are the packages that import declarations name, as the go command has compiled them.
func (u *unit) imports(fset *token.FileSet) types.Importer {
	known := map[string]*types.Package{}
	return importing(func(name string) (*types.Package, error) {
		path, ok := u.ImportMap[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("the go command does not say which package %q is", name)
		case path == "unsafe":
			return types.Unsafe, nil
		case known[path] != nil && known[path].Complete():
			return known[path], nil
		}
		return u.compiled(fset, known, path)
	})
}

// compiled reads the types of a package from its compiled file.
func (u *unit) compiled(fset *token.FileSet, known map[string]*types.Package, path string) (*types.Package, error) {
	name, ok := u.PackageFile[path]
	if !ok {
		return nil, fmt.Errorf("the go command gives no types of %s", path)
	}
	data, err := exportData(name)
	if err != nil {
		return nil, fmt.Errorf("types of %s: %w", path, err)
	}
	return gcexportdata.Read(bytes.NewReader(data), fset, known, path)
}

// exportData is the part of a compiled package that has its types. It is in the archive's first file, in lines $$B and $$; another
// file than an archive has nothing else.
func exportData(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const mark, header = "!<arch>\n", 60
	head := make([]byte, len(mark)+header)
	if n, err := io.ReadFull(f, head); err != nil || string(head[:len(mark)]) != mark {
		rest, err := io.ReadAll(f)
		return append(head[:n], rest...), err
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(head[len(mark)+48:][:10])))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(size)))
	if err != nil {
		return nil, err
	}
	_, data, begins := bytes.Cut(data, []byte("\n$$B\n"))
	data, ends := bytes.CutSuffix(data, []byte("\n$$\n"))
	if !begins || !ends {
		return nil, fmt.Errorf("%s has no export data", name)
	}
	return data, nil
}

// runner runs analyzers over a package, each once.
type runner struct {
	pass   analysis.Pass // of no analyzer yet
	states map[*analysis.Analyzer]*state
	order  []*state // of those that ran
}

// state is what an analyzer has made of the package.
type state struct {
	name   string
	ok     bool
	result any
	err    error
	found  []analysis.Diagnostic
}

// run runs an analyzer behind those that it requires, unless one of these failed.
func (r *runner) run(a *analysis.Analyzer) *state {
	if s := r.states[a]; s != nil {
		return s
	}
	s := &state{name: a.Name}
	r.states[a] = s
	pass := r.pass
	pass.Analyzer, pass.ResultOf = a, map[*analysis.Analyzer]any{}
	pass.Report = func(d analysis.Diagnostic) { s.found = append(s.found, d) }
	for _, other := range a.Requires {
		before := r.run(other)
		if !before.ok {
			return s // the other one says why
		}
		pass.ResultOf[other] = before.result
	}
	s.result, s.err = guarded(a, &pass)
	s.ok = s.err == nil
	r.order = append(r.order, s)
	return s
}

// only leaves out what was found in other files than some, unless these are none.
func (r *runner) only(files []string) {
	if len(files) == 0 {
		return
	}
	for _, s := range r.order {
		s.found = slices.DeleteFunc(s.found, func(d analysis.Diagnostic) bool {
			return !slices.Contains(files, filepath.Base(r.pass.Fset.Position(d.Pos).Filename))
		})
	}
}

// guarded runs an analyzer. A panic is an error of the package.
func guarded(a *analysis.Analyzer, pass *analysis.Pass) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s of warpline fails at package %s, by a mistake of its own: %v (%s)", a.Name, pass.Pkg.Path(), p, panicked())
		}
	}()
	return a.Run(pass)
}

// panicked is where a panic that is being recovered began.
func panicked() string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for begun := false; ; {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if begun && !inRuntime || !more {
			return place{file: f.File, line: f.Line}.String()
		}
		begun = begun || inRuntime
	}
}

// tell gives what was found to the go command.
func (r *runner) tell(u *unit, a *asked, stdout, stderr io.Writer) (int, error) {
	switch {
	case a.diff:
		return unitFailed, errors.New("go vet -fix -diff is not offered by warpline: -json has the edits of each fix, and -fix writes them")
	case a.fix:
		return unitDone, r.mend(u.FixArchive)
	case a.json && u.Stdout != "":
		f, err := os.Create(u.Stdout)
		if err != nil {
			return unitFailed, err
		}
		return unitDone, errors.Join(r.tellJSON(f, u.ID), f.Close())
	case a.json:
		return unitDone, r.tellJSON(stdout, u.ID)
	}
	return r.tellText(stderr)
}

// tellText writes lines for people.
func (r *runner) tellText(w io.Writer) (int, error) {
	status, failed := unitDone, []error(nil)
	for _, s := range r.order {
		failed = append(failed, s.err)
		for _, d := range s.found {
			status = unitFound
			fmt.Fprintf(w, "%s: %s\n", r.pass.Fset.Position(d.Pos), d.Message)
			for _, also := range d.Related {
				fmt.Fprintf(w, "%s: \t%s\n", r.pass.Fset.Position(also.Pos), also.Message)
			}
		}
	}
	return status, errors.Join(failed...)
}
