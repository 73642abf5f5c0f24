package vetgo

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/vet"
)

// module is where the library's packages are.
const module = "github.com/warpline-ml/warpline/"

// reader is what all rules stand on: it reads a package once.
var reader = &analysis.Analyzer{
	Name: "warpline", Doc: "read the turns, values and calls of training programs",
	Run:        func(p *analysis.Pass) (any, error) { return read(p), nil },
	ResultType: reflect.TypeFor[*program](),
}

// program is a package, or what of it has to do with the library.
type program struct {
	sync.Mutex // of one rule at a time: rules are run beside each other, and remember what they have found out

	pass    *analysis.Pass
	info    *types.Info
	parents map[ast.Node]ast.Node
	calls   []*call // in the order of the source
	assigns []*ast.AssignStmt
	byExpr  map[*ast.CallExpr]*call
	defs    map[types.Object][]def // assignments, in the order of the source
	uses    map[types.Object][]*ast.Ident
	decls   map[*types.Func]*ast.FuncDecl
	turns   map[ast.Node]*turn
	silent  map[string]vet.Silences // by file
	busy    map[*types.Func]bool    // functions whose results are under way
	entered map[*types.Func]bool    // functions that a search has looked into
	sources map[string][]byte
}

// call is a call of a function or method that has a name.
type call struct {
	expr *ast.CallExpr
	fn   *types.Func
	name string   // "data.Batches", "tensor.Tensor.Item"; packages of the library by their last names, others by their paths
	recv ast.Expr // of a method
}

// def is an assignment to a variable: of a value, or of one of the results of a call.
type def struct {
	at    ast.Node // the statement
	value ast.Expr // nil where it is not one: an operand of range, a parameter
	index int      // of the result
}

// read makes a program of a package; without calls, where the package does not import the library.
func read(pass *analysis.Pass) *program {
	p := &program{
		pass: pass, info: pass.TypesInfo, parents: map[ast.Node]ast.Node{}, byExpr: map[*ast.CallExpr]*call{}, defs: map[types.Object][]def{},
		uses: map[types.Object][]*ast.Ident{}, decls: map[*types.Func]*ast.FuncDecl{}, turns: map[ast.Node]*turn{}, busy: map[*types.Func]bool{}, entered: map[*types.Func]bool{}, sources: map[string][]byte{},
	}
	if !usesLibrary(pass.Pkg) {
		return p
	}
	for _, f := range pass.Files {
		if !ast.IsGenerated(f) {
			p.file(f)
		}
	}
	p.silent = p.silences()
	for _, c := range p.calls {
		p.findTurn(c)
	}
	return p
}

func usesLibrary(pkg *types.Package) bool {
	for _, i := range pkg.Imports() {
		if strings.HasPrefix(i.Path(), module) {
			return true
		}
	}
	return false
}

// file takes a file's nodes in.
func (p *program) file(f *ast.File) {
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			p.parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		p.node(n)
		return true
	})
}

func (p *program) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if fn, ok := p.info.Defs[n.Name].(*types.Func); ok && n.Body != nil {
			p.decls[fn] = n
		}
	case *ast.CallExpr:
		if c := p.named(n); c != nil {
			p.calls = append(p.calls, c)
			p.byExpr[n] = c
		}
	case *ast.Ident:
		if o := p.info.Uses[n]; o != nil {
			p.uses[o] = append(p.uses[o], n)
		}
	case *ast.AssignStmt:
		p.assigns = append(p.assigns, n)
		p.assigned(n, n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		var names []ast.Expr
		for _, name := range n.Names {
			names = append(names, name)
		}
		p.assigned(n, names, n.Values)
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if o := p.object(e); o != nil {
				p.defs[o] = append(p.defs[o], def{at: n})
			}
		}
	}
}

func (p *program) assigned(at ast.Node, to, values []ast.Expr) {
	for i, e := range to {
		o := p.object(e)
		switch {
		case o == nil || len(values) == 0: // var x T has no value that matters
		case len(values) == len(to):
			p.defs[o] = append(p.defs[o], def{at: at, value: values[i]})
		default:
			p.defs[o] = append(p.defs[o], def{at: at, value: values[0], index: i})
		}
	}
}

// object is the variable that an expression names.
func (p *program) object(e ast.Expr) types.Object {
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	if o := p.info.Defs[id]; o != nil {
		return o
	}
	if v, ok := p.info.Uses[id].(*types.Var); ok {
		return v
	}
	return nil
}

// named is a call by the function's name.
func (p *program) named(n *ast.CallExpr) *call {
	fun := ast.Unparen(n.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	var id *ast.Ident
	var recv ast.Expr
	switch f := fun.(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id, recv = f.Sel, f.X
	}
	fn, ok := p.info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return nil
	}
	fn = fn.Origin()
	path := strings.TrimPrefix(fn.Pkg().Path(), module)
	if path != fn.Pkg().Path() {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	c := &call{expr: n, fn: fn}
	if r := fn.Signature().Recv(); r != nil {
		c.recv = recv
		path += "." + typeName(r.Type())
	}
	c.name = path + "." + fn.Name()
	return c
}

// typeName is the name of a type, or of what it points to.
func typeName(t types.Type) string {
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// is tells whether an expression calls one of some functions.
func (p *program) is(e ast.Expr, names ...string) bool { return p.callOf(e, names...) != nil }

// callOf is the call that an expression is, if it is of one of some functions; of any where none is named.
func (p *program) callOf(e ast.Expr, names ...string) *call {
	x, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	c := p.byExpr[x]
	if c == nil || len(names) > 0 && !c.is(names...) {
		return nil
	}
	return c
}

func (c *call) is(names ...string) bool {
	for _, n := range names {
		if c.name == n {
			return true
		}
	}
	return false
}

// ours tells whether a call is of the library.
func (c *call) ours() bool { return strings.HasPrefix(c.fn.Pkg().Path(), module) }

// isType tells whether a type is, or points to, a named type of the library: "tensor.Tensor".
func isType(t types.Type, name string) bool {
	if t == nil {
		return false
	}
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return false
	}
	pkg, typ, _ := strings.Cut(name, ".")
	return n.Obj().Name() == typ && n.Obj().Pkg().Path() == module+pkg
}

func isTensor(t types.Type) bool { return isType(t, "tensor.Tensor") }

// holdsTensors tells whether values of a type are tensors, or are made of them: structs, slices, maps. Those with a turn of
// their own are batches.
func holdsTensors(t types.Type) bool { return holds(t, 0) }

func holds(t types.Type, depth int) bool {
	if t == nil || depth > 3 {
		return false
	}
	if isTensor(t) {
		return true
	}
	switch u := types.Unalias(t).Underlying().(type) {
	case *types.Pointer:
		return isBatch(t)
	case *types.Slice:
		return holds(u.Elem(), depth+1)
	case *types.Map:
		return holds(u.Elem(), depth+1)
	case *types.Struct:
		for f := range u.Fields() {
			if holds(f.Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

// isBatch tells whether a type points to a struct that embeds data.Turn.
func isBatch(t types.Type) bool {
	ptr, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	s, ok := ptr.Elem().Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if f.Embedded() && isType(f.Type(), "data.Turn") {
			return true
		}
	}
	return false
}

// climb calls f with the nodes around a node, innermost first, until it says no.
func (p *program) climb(n ast.Node, f func(ast.Node) bool) {
	for n = p.parents[n]; n != nil && f(n); n = p.parents[n] {
	}
}

// within tells whether a node lies in another.
func within(n, in ast.Node) bool { return in.Pos() <= n.Pos() && n.End() <= in.End() }

// inTest tells whether a node is in a test: there values are read to be compared, and nobody waits for speed.
func (p *program) inTest(n ast.Node) bool {
	return strings.HasSuffix(p.pass.Fset.File(n.Pos()).Name(), "_test.go")
}

// function is the declaration around a node, or the function literal that runs at another time.
func (p *program) function(n ast.Node) (around ast.Node) {
	p.climb(n, func(up ast.Node) bool {
		switch up := up.(type) {
		case *ast.FuncDecl:
			around = up
		case *ast.FuncLit:
			if p.runsElsewhere(up) {
				around = up
			}
		}
		return around == nil
	})
	return around
}

// statement is the statement around a node, and the block that it stands in.
func (p *program) statement(n ast.Node) (s ast.Stmt, in *ast.BlockStmt) {
	for up := n; up != nil; up = p.parents[up] {
		st, ok := up.(ast.Stmt)
		if !ok {
			continue
		}
		if b, ok := p.parents[up].(*ast.BlockStmt); ok {
			return st, b
		}
	}
	return nil, nil
}

// source is a file's text.
func (p *program) source(f *token.File) []byte {
	if data, ok := p.sources[f.Name()]; ok {
		return data
	}
	data, err := p.pass.ReadFile(f.Name())
	if err != nil || len(data) != f.Size() {
		data = nil // it has changed since
	}
	p.sources[f.Name()] = data
	return data
}

// between is the source between two places of a file.
func (p *program) between(from, to token.Pos) string {
	f := p.pass.Fset.File(from)
	if data := p.source(f); data != nil {
		return string(data[f.Offset(from):f.Offset(to)])
	}
	return "…"
}

// text is the source of a node.
func (p *program) text(n ast.Node) string { return p.between(n.Pos(), n.End()) }

func (p *program) line(at token.Pos) int { return p.pass.Fset.Position(at).Line }
