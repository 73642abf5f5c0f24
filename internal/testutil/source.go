package testutil

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Source is the parsed files of a package: its tests, or what is none, for tests that walk what there is.
func Source(t testing.TB, dir string, tests bool) (files []*ast.File) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if name := e.Name(); strings.HasSuffix(name, ".go") && strings.HasSuffix(name, "_test.go") == tests {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	return files
}

// Functions are the functions of files, without methods.
func Functions(files []*ast.File) map[string]ast.Node {
	all := map[string]ast.Node{}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				all[fn.Name.Name] = fn.Body
			}
		}
	}
	return all
}

// Receiver is the name of the type that a method belongs to, nothing of a function.
func Receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch x := typ.(type) { // of type parameters
	case *ast.IndexExpr:
		typ = x.X
	case *ast.IndexListExpr:
		typ = x.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// HasTensor reports whether one of the fields is a *Tensor, of whatever package, or a list of it.
func HasTensor(list *ast.FieldList) bool {
	if list == nil {
		return false
	}
	for _, field := range list.List {
		typ := field.Type
		for array, ok := typ.(*ast.ArrayType); ok; array, ok = typ.(*ast.ArrayType) {
			typ = array.Elt
		}
		star, ok := typ.(*ast.StarExpr)
		if !ok {
			continue
		}
		typ = star.X
		if of, ok := typ.(*ast.SelectorExpr); ok {
			typ = of.Sel
		}
		if id, ok := typ.(*ast.Ident); ok && id.Name == "Tensor" {
			return true
		}
	}
	return false
}

// Rows are the values that a file's literals and assignments give to keys that are strings.
func Rows(f *ast.File) map[string][]ast.Node {
	rows := map[string][]ast.Node{}
	add := func(key ast.Expr, v ast.Node) {
		if lit, ok := key.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				rows[s] = append(rows[s], v)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.KeyValueExpr:
			add(x.Key, x.Value)
		case *ast.AssignStmt:
			if at, ok := x.Lhs[0].(*ast.IndexExpr); ok {
				add(at.Index, x.Rhs[0])
			}
		}
		return true
	})
	return rows
}

// Names adds to names those that a piece of code has, also by way of the functions that it names.
func Names(n ast.Node, functions map[string]ast.Node, names map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !names[id.Name] {
			names[id.Name] = true
			if body := functions[id.Name]; body != nil {
				Names(body, functions, names)
			}
		}
		return true
	})
}
