package pytorch

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestMain compares, after all tests, what rows gave to use with what PyTorch gave: bench/pytorch/calls_reference.py evaluates
// the spellings of rows whose values are made by pattern.
func TestMain(m *testing.M) {
	status := m.Run()
	if status == 0 {
		if wrong := compare(); wrong != "" {
			fmt.Fprintln(os.Stderr, wrong)
			status = 1
		}
	}
	os.Exit(status)
}

// shown are the arguments of use, by file and line.
var shown = map[[2]string][]any{}

// remember keeps the values of a call of use that PyTorch has, too.
func remember(values []any) {
	pc, file, line, _ := runtime.Caller(2)
	name := runtime.FuncForPC(pc).Name()
	if golden()[name[strings.LastIndexByte(name, '.')+1:]] == nil {
		return
	}
	at := [2]string{filepath.Base(file), fmt.Sprint(line)}
	for _, v := range values {
		shown[at] = append(shown[at], numbers(v))
	}
}

// numbers are a value's, or nil.
func numbers(v any) [][]float64 {
	switch v := v.(type) {
	case *tensor.Tensor:
		if v == nil {
			return nil
		}
		return [][]float64{v.Floats()}
	case []*tensor.Tensor:
		var list [][]float64
		for _, e := range v {
			list = append(list, e.Floats())
		}
		return list
	case float64:
		return [][]float64{{v}}
	case bool:
		if v {
			return [][]float64{{1}}
		}
		return [][]float64{{0}}
	}
	return nil
}

// row is a row's calls, and the lines of its calls of use with how many arguments each has.
type row struct {
	function string
	calls    []string
	uses     [][2]int
}

// compare says what differs from testdata/values.json, or "".
func compare() string {
	want := golden()
	var wrong []string
	compared := 0
	for file, rows := range readRows() {
		for _, r := range rows {
			got := r.values(file)
			for i, call := range r.calls {
				w, ok := want[r.function][call]
				if !ok || got == nil {
					continue
				}
				compared++
				g := got[min(i, len(got)-1)]
				if len(r.calls) == 1 {
					g = slices.Concat(got...)
				}
				if !same(g, w) {
					wrong = append(wrong, fmt.Sprintf("%s: %s: %v, PyTorch gives %v", r.function, call, g, w))
				}
			}
		}
	}
	if compared < 150 && flag.Lookup("test.run").Value.String() == "" {
		wrong = append(wrong, fmt.Sprintf("only %d calls are compared with PyTorch", compared))
	}
	slices.Sort(wrong)
	return strings.Join(wrong, "\n")
}

// golden is what PyTorch gave, by function and call.
var golden = sync.OnceValue(func() (want map[string]map[string][][]float64) {
	text, err := os.ReadFile("testdata/values.json")
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		panic(err)
	}
	return want
})

// values are what use got for each call of a row, or nil where the row was not run or its parts do not belong to single calls.
func (r *row) values(file string) [][][]float64 {
	var list [][][]float64
	for _, u := range r.uses {
		got, ok := shown[[2]string{file, fmt.Sprint(u[0])}]
		if !ok {
			return nil
		}
		if u[1] == 1 && len(got) > 1 { // several results of one call
			var all [][]float64
			for _, g := range got {
				all = append(all, g.([][]float64)...)
			}
			list = append(list, all)
			continue
		}
		for _, g := range got {
			list = append(list, g.([][]float64))
		}
	}
	if len(list) != len(r.calls) && len(r.calls) != 1 {
		return nil
	}
	return list
}

func same(a, b [][]float64) bool {
	if len(a) > len(b) && len(b) > 0 {
		a = a[:len(b)] // values and places, of which PyTorch's call gives the values
	}
	return slices.EqualFunc(a, b, func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(a, b float64) bool {
			return math.Abs(a-b) <= 1e-5*(1+math.Abs(b)) || a == b || math.IsNaN(a) && math.IsNaN(b)
		})
	})
}

var spelling = regexp.MustCompile("`([^`]+)`")

// readRows finds the rows of the tests, by file.
var readRows = sync.OnceValue(func() map[string][]row {
	all := map[string][]row{}
	files, _ := filepath.Glob("*_test.go")
	for _, file := range files {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		line := func(p token.Pos) int { return fset.Position(p).Line }
		uses := map[int]int{}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok && id.Name == "use" {
					uses[line(c.Pos())] = len(c.Args)
				}
			}
			return true
		})
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, c := range f.Comments {
				if c.Pos() < fn.Body.Pos() || c.Pos() > fn.End() || !strings.HasPrefix(c.Text(), "`") {
					continue
				}
				cell, _, _ := strings.Cut(strings.Join(strings.Fields(c.Text()), " "), " | ")
				r := row{function: fn.Name.Name}
				for _, m := range spelling.FindAllStringSubmatch(cell, -1) {
					r.calls = append(r.calls, m[1])
				}
				for at := line(c.End()) + 1; uses[at] > 0; at++ {
					r.uses = append(r.uses, [2]int{at, uses[at]})
				}
				all[file] = append(all[file], r)
			}
		}
	}
	return all
})

// TestRowsAreRead knows that the values have rows.
func TestRowsAreRead(t *testing.T) {
	n := 0
	for rows := range maps.Values(readRows()) {
		n += len(rows)
	}
	if n < 200 {
		t.Errorf("%d rows", n)
	}
}
