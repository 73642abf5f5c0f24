package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestGolden repeats cases of the comparison, which PyTorch computed, without PyTorch.
func TestGolden(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		seen[c.Op] = true
		got := c.Run(env)
		if got.Err != "" {
			t.Errorf("%s case %d: %s", c.Op, c.ID, got.Err)
			continue
		}
		for part, pair := range map[string][2][]Value{"result": {got.Out, c.Got.Out}, "gradient": {got.Grads, c.Got.Grads}, "second gradient": {got.Second, c.Got.Second}} {
			for i, want := range pair[1] {
				if i >= len(pair[0]) {
					pair[0] = append(pair[0], Value{want.DType, want.Shape, make([]num, len(want.Data))}) // it hangs on no operand
				}
				if d := differs(&pair[0][i], &want, part, c.narrowest()); d != "" {
					t.Errorf("%s case %d, %s %d: %s", c.Op, c.ID, part, i, d)
				}
			}
		}
	}
	for _, name := range names {
		if !seen[name] {
			t.Errorf("no case of %s is among the golden ones", name)
		}
	}
}

// tolerance is compare.py's.
var tolerance = map[string]float64{"f64": 1e-10, "f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}

// narrowest is the largest tolerance among the operands.
func (c *Case) narrowest() (tol float64) {
	for _, o := range c.In {
		tol = max(tol, tolerance[o.DType])
	}
	return tol
}

// differs says what differs between a value and PyTorch's. Gradients are as exact as the narrowest operand.
func differs(got, want *Value, part string, narrowest float64) string {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Sprintf("%s%v, PyTorch %s%v", got.DType, got.Shape, want.DType, want.Shape)
	}
	tol := tolerance[want.DType]
	scale := 1.0
	if part != "result" {
		tol = max(tol, narrowest)
		tol *= map[string]float64{"gradient": 20, "second gradient": 50}[part]
		for _, v := range want.Data {
			if a := math.Abs(float64(v)); a > scale && !math.IsInf(a, 0) {
				scale = a
			}
		}
	}
	for i, v := range want.Data {
		g, w := float64(got.Data[i]), float64(v)
		if g == w || g != g && w != w || math.Abs(g-w) <= tol*(scale+math.Abs(w)) && !math.IsInf(w, 0) {
			continue
		}
		return fmt.Sprintf("element %d is %v, PyTorch %v", i, g, w)
	}
	return ""
}

// apart are methods that give a tensor and are not compared, and why.
var apart = map[string]string{
	"Dropout": "random", "Bernoulli": "random", "Multinomial": "random", "Grad": "a gradient that is there", "Keep": "ownership", "In": "modes", "Enter": "a module's name", "EnterPair": "likewise", "AutoWide": "a policy", "To": "another device", "Detach": "no values of its own",
	"RequireGrad": "used by every case", "Contiguous": "its values are its operand's; layouts use it", "ZerosLike": "constant", "FullLike": "constant",
	"CrossEntropy": "nn.CrossEntropy is compared", "Resample": "nn.Upsample is compared, which gives it its operands", "CrossEntropyMean": "nn.CrossEntropy is compared",
	"LinearCrossEntropy": "nn's test compares with Linear and CrossEntropy", "LinearCrossEntropyTotal": "nn's test compares with Linear and CrossEntropy", "LinearCrossEntropyMean": "nn's test compares with Linear and CrossEntropy",
}

// TestEveryMethodIsCompared holds the table against the methods of Tensor.
func TestEveryMethodIsCompared(t *testing.T) {
	used := map[string]bool{}
	for _, file := range []string{"ops.go", "layers.go", "einsum.go", "functions.go", "arranged.go", "order.go", "spatial.go", "written.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				used[s.Sel.Name] = true
			}
			return true
		})
	}
	typ := reflect.TypeFor[*tensor.Tensor]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		gives := false
		for j := range m.Type.NumOut() {
			gives = gives || m.Type.Out(j) == typ || m.Type.Out(j) == reflect.SliceOf(typ)
		}
		switch why := apart[m.Name]; {
		case gives && !used[m.Name] && why == "":
			t.Errorf("%s is neither in the table nor among those apart", m.Name)
		case why != "" && !gives:
			t.Errorf("%s is listed as apart, and gives no tensor", m.Name)
		}
	}
}

// TestCasesFollowFromTheSeed: equal seeds give equal cases, others do not.
func TestCasesFollowFromTheSeed(t *testing.T) {
	text := func(seed uint64) string {
		var b strings.Builder
		for id := range 300 {
			j, err := json.Marshal(Draw(seed, id))
			if err != nil {
				t.Fatal(err)
			}
			b.Write(j)
		}
		return b.String()
	}
	if one := text(1); one != text(1) || one == text(2) {
		t.Error("the cases of a seed are not its own")
	}
}

// TestDrawnValuesHaveTheirDType: rounding what a dtype has changes nothing.
func TestDrawnValuesHaveTheirDType(t *testing.T) {
	for id := range 500 {
		for _, o := range Draw(3, id).In {
			dt, err := dtype.Parse(o.DType)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range o.Data {
				if f := float64(v); round(f, dt) != f && f == f {
					t.Errorf("case %d: %v is no %s", id, f, dt)
				}
			}
		}
	}
}
