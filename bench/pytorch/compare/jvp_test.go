package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// flat are calls whose results hang on no operand: comparisons, whole numbers, constants, and those that the table draws for
// their values only.
var flat = strings.Fields("all and any arange argmax argmin argsort bincount bit_and bit_and_num bit_not bit_or bit_or_num bit_xor bit_xor_num bucketize eq eq_num " +
	"eye full gcd ge ge_num gt gt_num heaviside index_copy_last index_put_last isfinite isinf isnan lcm le le_num linspace lt lt_num median_values ne ne_num " +
	"nonzero not one_hot or scatter_last searchsorted shift_left shift_left_num shift_right shift_right_num signbit sum_squares topk_values unique xor")

// jumpy are remainders of quotients so large that a difference's step leads beyond the next jump.
func (c *Case) jumpy() bool {
	return (c.Op == "rem" || c.Op == "fmod") && slices.ContainsFunc(c.In[0].Data, func(v num) bool { return math.Abs(float64(v)) > 1000 })
}

// TestJVP walks the table: along a direction the derivative of each call that has one is what differences of values say, in
// float64.
func TestJVP(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		found := false
		for k := 0; k < 40 && !found; k++ {
			c := Draw(5, i+k*len(names))
			if c.Order < 2 || c.jumpy() {
				continue
			}
			_, err := env.Try(func(env *tensor.Env) *tensor.Tensor { found = c.jvp(t, env); return nil })
			if err != nil && !slices.Contains(flat, name) {
				t.Errorf("%s case %d: %v", c.Op, c.ID, err)
			}
		}
		if found == slices.Contains(flat, name) {
			t.Errorf("%s: a derivative is %v", name, found)
		}
	}
}

// jvp compares with the central difference along a direction, and says whether there was anything to compare.
func (c *Case) jvp(t *testing.T, env *tensor.Env) bool {
	var in, x, v []*tensor.Tensor
	var at []int
	for i := range c.In {
		o := c.In[i]
		dt, _ := dtype.Parse(o.DType)
		if dt.IsFloat() {
			o.DType = dtype.F64.String()
		}
		in = append(in, o.build(env))
		if o.learns() {
			direction := make([]float64, in[i].Size())
			for k := range direction {
				direction[k] = math.Cos(float64(3*i+k)) / 4
			}
			x, v, at = append(x, in[i]), append(v, tensor.From(env, direction, in[i].Shape()...)), append(at, i)
		}
	}
	if len(x) == 0 {
		return false
	}
	var learn []bool // which results hang on the operands
	call := func(x ...*tensor.Tensor) *tensor.Tensor {
		all := append(ts{}, in...)
		for i := range all {
			all[i] = all[i].In(x[0].Env())
		}
		for k, i := range at {
			all[i] = x[k]
		}
		out := table[c.Op].call(all, &c.Attrs)
		rows := ts{x[0].Env().FullOf(dtype.F64, 0, 1)}
		for k, y := range out {
			if len(learn) <= k {
				learn = append(learn, y.Recorded())
			}
			if learn[k] {
				rows = append(rows, y.Cast(dtype.F64).Scale(float64(k+1)).Reshape(-1))
			}
		}
		return tensor.Cat(0, rows...)
	}
	step := 1e-6
	if c.Op == "cast" { // linear, but rounded
		step = 0.25
	}
	moved := func(by float64) *tensor.Tensor {
		list := append(ts{}, x...)
		for i := range list {
			list[i] = x[i].AddScaled(v[i], by)
		}
		return call(list...)
	}
	y, got := tensor.JVP(call, x, v)
	values, want := y.Floats(), moved(step).Sub(moved(-step)).Scale(1/(2*step)).Floats()
	for k, g := range got.Floats() {
		lost := math.Abs(values[k]) * 0x1p-50 / step // of the difference, as values are rounded
		if w := want[k]; !(math.Abs(g-w) <= 1e-5*(1+math.Abs(w))+lost) && !(math.IsNaN(g) && math.IsNaN(w)) {
			t.Errorf("%s case %d, element %d: %v along the direction, differences say %v", c.Op, c.ID, k, g, w)
			break
		}
	}
	return len(want) > 1
}
