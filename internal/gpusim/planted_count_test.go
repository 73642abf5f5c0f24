package gpusim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlantedAreMany counts the rows of the tables of planted bugs, and those that are right beside: 60 bugs and more, in each table
// something that is none.
func TestPlantedAreMany(t *testing.T) {
	files, err := filepath.Glob("planted*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	bugs, right := 0, 0
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			list, ok := n.(*ast.CompositeLit)
			if !ok || !isBugs(list.Type) {
				return true
			}
			before := right
			for _, row := range list.Elts {
				says := row.(*ast.CompositeLit).Elts[3]
				if lit, ok := says.(*ast.BasicLit); ok && (lit.Value == `""` || strings.HasPrefix(lit.Value, `"advice: `)) {
					right++
				} else {
					bugs++
				}
			}
			if right == before {
				t.Errorf("%s: a table whose rows are all bugs", path)
			}
			return false
		})
	}
	if t.Logf("%d bugs, %d that are none", bugs, right); bugs < 60 || right < 20 {
		t.Errorf("%d bugs are planted, and %d changes that are none", bugs, right)
	}
}

// isBugs is whether a type is []plantedBug.
func isBugs(t ast.Expr) bool {
	a, ok := t.(*ast.ArrayType)
	if !ok {
		return false
	}
	name, ok := a.Elt.(*ast.Ident)
	return ok && name.Name == "plantedBug"
}
