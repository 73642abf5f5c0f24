package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apart are calls that give tensors, or write into them, and are not compared here, and why.
var apart = map[string]string{
	"Dropout": "random", "Bernoulli": "random", "Multinomial": "random", "Rand": "random", "Randn": "random", "RandInt": "random", "RandPerm": "random",
	"Ones": "Full of 1", "Zeros": "Full of 0", "Full": "FullOf f32", "FullLike": "constant", "ZerosLike": "constant", "Unwritten": "memory that holds anything",
	"From": "makes every operand", "FromMatrix": "another's numbers", "NewParam": "a value that learns", "NewBuffer": "a value that is state", "NewCell": "a number",
	"RequireGrad": "used by every case", "Grad": "used by every case", "GradGraph": "used by every case",
	"JVP": "TestJVP, and tensor's goldens", "Jacobian": "tensor's goldens (jacobian_reference.py)", "VJP": "tensor's goldens", "HVP": "tensor's goldens", "Hessian": "tensor's goldens",
	"Detach": "no values of its own", "Contiguous": "its values are its operand's; layouts use it", "To": "another device", "In": "modes", "Keep": "ownership", "Join": "ownership", "Surface": "ownership",
	"Enter": "a module's name", "EnterPair": "a module's name", "AutoWide": "a policy", "Do": "a block", "Try": "a block", "Tidy": "a block", "Chain": "a block", "ChainPair": "a block",
	"Recompute": "the values of the function that it is given", "Offload": "likewise", "RunPart": "likewise", "Record": "likewise",
	"Resample":   "nn.Upsample is compared, which gives it its operands",
	"SGDInPlace": "optim's goldens (optim_reference.py)", "AdamWInPlace": "optim's goldens", "RuleInPlace": "optim's goldens (rules_reference.py)",
	"Adam8bitInPlace": "not in PyTorch: internal/conform compares with its formula", "GradNormInPlace": "optim's goldens, of clipping", "LossScaleInPlace": "optim's goldens, of loss scaling",
	"TrackMomentsInPlace": "nn's goldens of BatchNorm (nn_reference.py)",
}

// exported are package tensor's calls on values: functions and methods of Tensor and Env that give tensors or write into them.
func exported(t *testing.T) (calls []string) {
	for _, f := range parsed(t, "../../../tensor") {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Recv != nil && !slices.Contains([]string{"Tensor", "Env"}, receiver(fn)) {
				continue
			}
			gives := fn.Type.Results != nil && slices.ContainsFunc(fn.Type.Results.List, func(r *ast.Field) bool { return isTensor(r.Type) })
			if gives || strings.HasSuffix(fn.Name.Name, "InPlace") {
				calls = append(calls, fn.Name.Name)
			}
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// parsed are the files of a package without its tests.
func parsed(t *testing.T, dir string) (files []*ast.File) {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	return files
}

// receiver is the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// isTensor reports whether a type is *Tensor, or a list of it.
func isTensor(typ ast.Expr) bool {
	switch x := typ.(type) {
	case *ast.ArrayType:
		return isTensor(x.Elt)
	case *ast.StarExpr:
		id, ok := x.X.(*ast.Ident)
		return ok && id.Name == "Tensor"
	}
	return false
}

// callsByOp are the names that each row of the table selects, by way of this package's functions too, and of a file's own
// variables that are functions.
func callsByOp(t *testing.T) map[string]map[string]bool {
	functions, calls := map[string]ast.Node{}, map[string]map[string]bool{}
	files := parsed(t, ".")
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				functions[fn.Name.Name] = fn.Body
			}
		}
	}
	for _, f := range files {
		known := maps.Clone(functions)
		rows := map[string][]ast.Node{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.KeyValueExpr:
				rows[quoted(x.Key)] = append(rows[quoted(x.Key)], x.Value)
			case *ast.AssignStmt:
				if at, ok := x.Lhs[0].(*ast.IndexExpr); ok {
					rows[quoted(at.Index)] = append(rows[quoted(at.Index)], x.Rhs[0])
				}
				if id, ok := x.Lhs[0].(*ast.Ident); ok {
					if fn, ok := x.Rhs[0].(*ast.FuncLit); ok {
						known[id.Name] = fn.Body
					}
				}
			}
			return true
		})
		for _, name := range names {
			for _, row := range rows[name] {
				if calls[name] == nil {
					calls[name] = map[string]bool{}
				}
				selected(row, known, calls[name], map[string]bool{})
			}
		}
	}
	return calls
}

// quoted is the value of a string literal, or nothing.
func quoted(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}

// selected collects the names that a piece of code selects.
func selected(n ast.Node, functions map[string]ast.Node, names, seen map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			names[x.Sel.Name] = true
		case *ast.Ident:
			if body := functions[x.Name]; body != nil && !seen[x.Name] {
				seen[x.Name] = true
				selected(body, functions, names, seen)
			}
		}
		return true
	})
}

// TestEveryCallIsCompared holds the table against what package tensor exports: a call that gives a tensor is in a row, whose
// golden cases TestGoldenShapes counts, or among those apart.
func TestEveryCallIsCompared(t *testing.T) {
	compared, byOp := map[string]bool{}, callsByOp(t)
	for _, op := range names {
		if len(byOp[op]) == 0 {
			t.Errorf("the row of %s is not found", op)
		}
		maps.Copy(compared, byOp[op])
	}
	all := exported(t)
	if len(all) < 200 {
		t.Fatalf("%d calls", len(all))
	}
	for _, name := range all {
		if !compared[name] && apart[name] == "" {
			t.Errorf("%s is neither in the table nor among those apart: give it a row there and in compare.py, and make the golden cases again: %s", name, remake)
		}
	}
	for name := range apart {
		if !slices.Contains(all, name) {
			t.Errorf("%s is listed as apart, and gives no tensor", name)
		}
		if compared[name] && !slices.Contains(incidental, name) {
			t.Errorf("%s is listed as apart, and is in the table", name)
		}
	}
}

// incidental are calls apart that rows use beside what they compare.
var incidental = strings.Fields("Env ZerosLike FullLike Cast In")
