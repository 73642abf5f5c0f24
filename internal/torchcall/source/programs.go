package source

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/torchcall"
)

// program is a file of examples/pytorch.
type program struct {
	table *torchcall.Table
	fset  *token.FileSet
	lines map[string]int        // numbers of table.Lines
	top   map[string]definition // of the file
}

// readPrograms adds the rows of a folder's test files, in the order of the sections.
func readPrograms(t *torchcall.Table, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	p := &program{table: t, fset: token.NewFileSet(), lines: map[string]int{}}
	for _, file := range files {
		f, err := parser.ParseFile(p.fset, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		p.top = p.topOf(f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if err := p.function(f, fn); err != nil {
					return err
				}
			}
		}
	}
	sorting.By(t.Rows, func(a, b torchcall.Row) int { return a.Section - b.Section })
	return nil
}

var quoted = regexp.MustCompile(`^"([^"]+)"`)

// function adds the rows of a function, whose comment begins with its section in quotes.
func (p *program) function(f *ast.File, fn *ast.FuncDecl) error {
	section := -1
	if m := quoted.FindStringSubmatch(fn.Doc.Text()); m != nil {
		if section = slices.Index(p.table.Sections, m[1]); section < 0 {
			return fmt.Errorf("%s: page.md has no section %q: %q", p.at(fn), m[1], p.table.Sections)
		}
	}
	for _, c := range f.Comments {
		if c.Pos() < fn.Body.Pos() || c.Pos() > fn.End() || !strings.HasPrefix(c.Text(), "`") {
			continue
		}
		if section < 0 {
			return fmt.Errorf("%s: a row, in a function whose comment does not begin with its section in quotes", p.at(c))
		}
		if err := p.row(f, fn, c, section); err != nil {
			return err
		}
	}
	return nil
}

var span = regexp.MustCompile("`([^`]+)`")

// row adds the row of a comment.
func (p *program) row(f *ast.File, fn *ast.FuncDecl, c *ast.CommentGroup, section int) error {
	cell, note, _ := strings.Cut(strings.Join(strings.Fields(c.Text()), " "), " | ")
	r := torchcall.Row{Section: section, Note: note}
	for _, m := range span.FindAllStringSubmatch(cell, -1) {
		r.PyTorch = append(r.PyTorch, m[1])
	}
	if cell != "`"+strings.Join(r.PyTorch, "`, `")+"`" {
		r.Cell = cell
	}
	statements := p.following(f, fn.Body, c)
	if len(r.PyTorch) == 0 || len(statements) == 0 {
		return fmt.Errorf("%s: this row has %d of PyTorch's calls, and %d statements follow it", p.at(c), len(r.PyTorch), len(statements))
	}
	for _, s := range statements {
		for _, e := range p.spellings(s) {
			text := p.text(e)
			if _, ok := e.(*ast.RangeStmt); ok {
				r.Whole = example.Replace(text)
				text, _, _ = strings.Cut(text, " {\n")
			}
			if strings.Contains(text, "\n") {
				return fmt.Errorf("%s: a spelling in a table is one line", p.at(e))
			}
			r.Go = append(r.Go, text)
			r.Makes = append(r.Makes, p.makes(fn.Body, s, e))
		}
	}
	p.table.Rows = append(p.table.Rows, r)
	return nil
}

// following are the statements directly below a comment: up to an empty line, or to the next comment.
func (p *program) following(f *ast.File, body *ast.BlockStmt, c *ast.CommentGroup) (list []ast.Stmt) {
	line := p.line(c.End()) + 1
	ast.Inspect(body, func(n ast.Node) bool {
		b, ok := n.(*ast.BlockStmt)
		if !ok || c.Pos() < b.Pos() || c.Pos() > b.End() {
			return true
		}
		for _, s := range b.List {
			if s.Pos() > c.Pos() && p.line(s.Pos()) == line {
				list, line = append(list, s), p.line(s.End())+1
			}
		}
		return true
	})
	return list
}

// spellings are what a statement shows: what use is given, what is done where an error is looked at, or itself.
func (p *program) spellings(s ast.Stmt) []ast.Node {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok && p.text(call.Fun) == "use" {
			var list []ast.Node
			for _, e := range call.Args {
				list = append(list, e)
			}
			return list
		}
	case *ast.IfStmt:
		if a, ok := s.Init.(*ast.AssignStmt); ok {
			return []ast.Node{a.Rhs[0]}
		}
	}
	return []ast.Node{s}
}

// makes are the numbers of the lines that make what e names, in the order of the program: those before s, and what these
// name themselves.
func (p *program) makes(body *ast.BlockStmt, s ast.Stmt, e ast.Node) []int {
	made := definitions(body, s.Pos())
	maps.Copy(made, p.top)
	if _, ok := made["env"]; !ok {
		made["env"] = definition{name: "env", whole: "env := tensor.Best()"}
	}
	var need []definition
	var visit func(n ast.Node)
	visit = func(n ast.Node) {
		for _, name := range slices.Sorted(maps.Keys(identifiers(n))) {
			d, ok := made[name]
			if !ok || slices.ContainsFunc(need, func(o definition) bool { return o.at == d.at && o.name == d.name }) {
				continue
			}
			need = append(need, d)
			if d.value != nil {
				visit(d.value)
			}
		}
	}
	visit(e)
	sorting.By(need, func(a, b definition) int { return int(a.at - b.at) })
	list := []int{}
	for _, d := range need {
		if n := p.number(d.text(p)); !slices.Contains(list, n) { // of several variables there is one line
			list = append(list, n)
		}
	}
	return list
}

// number is that of a line.
func (p *program) number(line string) int {
	n, ok := p.lines[line]
	if !ok {
		n = len(p.table.Lines)
		p.lines[line] = n
		p.table.Lines = append(p.table.Lines, line)
	}
	return n
}

// definition is a variable's, or several variables' of one call.
type definition struct {
	name  string
	at    token.Pos
	names []ast.Expr
	value ast.Expr
	whole string // a type with its methods, or a function
}

// text is the definition as an example has it: made where a program of one's own makes its values.
func (d definition) text(p *program) string {
	if d.whole != "" {
		return d.whole
	}
	names := make([]string, len(d.names))
	for i, e := range d.names {
		names[i] = p.text(e)
	}
	return strings.Join(names, ", ") + " := " + asExample(p.text(d.value))
}

var (
	// example is what a program of one's own has for what a test has.
	example = strings.NewReplacer(`fresh(t, "cpu")`, "tensor.Best()", `fresh(t, "null:a100-80")`, "tensor.Best()", "t.TempDir()", `"run"`, "t.Fatal(", "log.Fatal(")
	// pattern are known numbers, to compare what is computed from them.
	pattern = regexp.MustCompile(`pattern\(env, [^,]+, [^,]+, [^,]+, ([^()]*)\)`)
)

func asExample(code string) string {
	return pattern.ReplaceAllString(example.Replace(code), "env.Randn($1)")
}

// topOf are the types of a file with their methods, and the functions that are no tests.
func (p *program) topOf(f *ast.File) map[string]definition {
	top := map[string]definition{}
	for _, d := range f.Decls {
		name, text := p.topName(d)
		if name == "" {
			continue
		}
		t := top[name]
		if t.whole != "" {
			t.whole += "\n"
		}
		t.name, t.whole = name, t.whole+asExample(text)
		top[name] = t
	}
	return top
}

// topName is what a declaration belongs to, and its text without its comment.
func (p *program) topName(d ast.Decl) (name, text string) {
	switch d := d.(type) {
	case *ast.GenDecl:
		bare := *d
		bare.Doc = nil
		if s, ok := d.Specs[0].(*ast.TypeSpec); ok {
			return s.Name.Name, p.text(&bare)
		}
	case *ast.FuncDecl:
		bare := *d
		bare.Doc = nil
		switch {
		case d.Recv != nil:
			return strings.TrimPrefix(p.text(d.Recv.List[0].Type), "*"), p.text(&bare)
		case d.Name.Name != "pattern" && !strings.HasPrefix(d.Name.Name, "Test"):
			return d.Name.Name, p.text(&bare)
		}
	}
	return "", ""
}

// definitions are the variables that are made before a place: by the last statement that does.
func definitions(body *ast.BlockStmt, before token.Pos) map[string]definition {
	made := map[string]definition{}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Pos() >= before || a.Tok != token.DEFINE {
			return true
		}
		for i, lhs := range a.Lhs {
			id, ok := lhs.(*ast.Ident)
			if !ok || id.Name == "_" {
				continue
			}
			d := definition{name: id.Name, at: id.Pos(), names: a.Lhs, value: a.Rhs[0]}
			if len(a.Rhs) == len(a.Lhs) {
				d.names, d.value = a.Lhs[i:i+1], a.Rhs[i]
			}
			made[id.Name] = d
		}
		return true
	})
	return made
}

// identifiers are the names in an expression that are no fields and no methods.
func identifiers(n ast.Node) map[string]bool {
	seen := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			for name := range identifiers(n.X) {
				seen[name] = true
			}
			return false
		case *ast.KeyValueExpr:
			for name := range identifiers(n.Value) {
				seen[name] = true
			}
			return false
		case *ast.Ident:
			seen[n.Name] = true
		}
		return true
	})
	return seen
}

func (p *program) text(n ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, p.fset, n); err != nil {
		panic(err)
	}
	return b.String()
}

func (p *program) line(pos token.Pos) int { return p.fset.Position(pos).Line }

func (p *program) at(n ast.Node) string {
	at := p.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}
