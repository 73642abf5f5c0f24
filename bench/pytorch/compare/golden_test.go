package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// goldenFile has cases of every op of the table with PyTorch's results, of which compare.py chooses some of each.
const goldenFile = "testdata/golden.jsonl"

// remake is how the golden file is made.
const remake = "go run ./bench/pytorch/compare -python python3 -n 40000 -seed 11 -golden bench/pytorch/compare/" + goldenFile

func goldenCases(t *testing.T) (cases []*Case) {
	f, err := os.Open(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		c := &Case{}
		if err := json.Unmarshal(lines.Bytes(), c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// TestGolden repeats cases of the comparison, which PyTorch computed, without PyTorch: all on one device, a part on the
// simulated GPU.
func TestGolden(t *testing.T) {
	cases := goldenCases(t)
	spread := testutil.NewSpread(t, testutil.Seed(t), 40)
	some := testutil.Some(spread, cases, func(c *Case) string { return fmt.Sprint(c.Op, c.ID) })
	for name, cases := range map[string][]*Case{testutil.Device(): cases, "sim:0": some} {
		t.Run(name, func(t *testing.T) {
			env, err := tensor.Fresh(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				c.golden(t, env)
			}
		})
	}
}

// golden compares a case's results and derivatives with PyTorch's.
func (c *Case) golden(t *testing.T, env *tensor.Env) {
	got := c.Run(env)
	if got.Err != "" {
		t.Errorf("%s case %d: %s", c.Op, c.ID, got.Err)
		return
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

// TestGoldenShapes: the golden cases of each op are of five shapes at least, with a gradient and a second derivative where
// results hang on operands, and with what is easily got wrong: a dimension of 1, a layout that is not row-major.
func TestGoldenShapes(t *testing.T) {
	const least = 5
	type set map[string]bool
	parts := map[string]map[string]set{}
	for _, c := range goldenCases(t) {
		if parts[c.Op] == nil {
			parts[c.Op] = map[string]set{}
		}
		for part, has := range c.parts() {
			if parts[c.Op][part] == nil {
				parts[c.Op][part] = set{}
			}
			if has {
				parts[c.Op][part][c.shapes()] = true
			}
		}
	}
	for _, name := range names {
		want := map[string]int{"result": least, "gradient": least, "second derivative": least, "operand that is not row-major": 1, "dimension of 1": 1}
		if slices.Contains(flat, name) {
			delete(want, "gradient")
			delete(want, "second derivative")
		}
		if slices.Contains(fromNothing, name) {
			delete(want, "dimension of 1")
		}
		for part, n := range want {
			if have := len(parts[name][part]); have < n {
				t.Errorf("%s: golden cases of %d shapes have a %s, of %d at least: add the op to OPS in compare.py and make them again: %s", name, have, part, n, remake)
			}
		}
	}
}

// fromNothing are calls that take no operand: what is drawn for them stands for the device.
var fromNothing = strings.Fields("arange eye full linspace")

// parts tells what a case has that golden cases of its op must have.
func (c *Case) parts() map[string]bool {
	learns := slices.ContainsFunc(c.In, func(o Operand) bool { return o.learns() && len(o.Data) > 0 })
	return map[string]bool{
		"result": true, "gradient": learns && len(c.Got.Grads) > 0, "second derivative": learns && len(c.Got.Second) > 0,
		"operand that is not row-major": slices.ContainsFunc(c.In, func(o Operand) bool { return o.Layout != "dense" }),
		"dimension of 1":                slices.ContainsFunc(c.In, func(o Operand) bool { return slices.Contains(o.Shape, 1) }),
	}
}

// shapes are those of operands and results.
func (c *Case) shapes() string {
	var all [][]int
	for _, o := range c.In {
		all = append(all, o.Shape)
	}
	for _, v := range c.Got.Out {
		all = append(all, v.Shape)
	}
	return fmt.Sprint(all)
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
