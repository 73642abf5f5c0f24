package conform

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// GradCase is one use of a gradient rule: the operands of a case, and a gradient of its first result.
type GradCase struct {
	*Case
	Seed ref.Array

	diffs sync.Once
	want  [][]float64 // by operand; NaN where the op has a kink
}

const (
	perCode  = 4    // gradient cases of a code and dtype
	smallest = 2    // elements of a result worth differentiating
	mostDiff = 160  // elements of an operand that differences are affordable for
	step     = 1e-4 // of the differences
)

// GradCases picks small, smooth cases in f64 and f32 of every code with a gradient rule from those of the suite.
func GradCases(o Options) (list []*GradCase) {
	type kind struct {
		code ir.Code
		dt   dtype.DType
	}
	count := map[kind]int{}
	o.Short, o.precise, o.Codes = true, true, withRules(o.Codes)
	for c := range Cases(o) {
		k := kind{c.Op.Code, c.gradDType()}
		if k.dt == dtype.Invalid || count[k] == perCode || !c.smooth(k.dt) {
			continue
		}
		count[k]++
		want, _, _ := c.Want()
		r := newRand(o.Seed, uint64(len(list)))
		list = append(list, &GradCase{Case: c, Seed: normal(r, want[0].Type.AsDense())})
	}
	return list
}

// withRules are those of codes, or of all if they are nil, that have a gradient rule.
func withRules(codes []ir.Code) []ir.Code {
	some := []ir.Code{}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if autograd.Of(code) != nil && (codes == nil || slices.Contains(codes, code)) {
			some = append(some, code)
		}
	}
	return some
}

// gradDType is the dtype of a case on whose operands its code's gradient rule may be checked, or Invalid.
func (c *Case) gradDType() dtype.DType {
	if c.Fails || c.Alias != nil || slices.Contains([]string{"ties", "constant rows", "nothing dropped"}, c.Why) {
		return dtype.Invalid
	}
	dt := dtype.Invalid
	for i, a := range c.In {
		if !a.Type.DType.IsFloat() {
			continue
		}
		if dt == dtype.Invalid {
			dt = a.Type.DType
		}
		repeats := slices.Contains(c.Op.In(i).Strides(), 0) && a.Type.Size() > 1
		if a.Type.DType != dt || dt != dtype.F64 && dt != dtype.F32 || a.Type.Size() > mostDiff || repeats || !finite(a.Data) {
			return dtype.Invalid
		}
	}
	if dt == dtype.Invalid || c.Op.Code == ir.Cast && c.Op.Attr.DType != dtype.F64 || c.Op.Attr.Precision != ir.Highest {
		return dtype.Invalid // rounding has no derivative
	}
	return dt
}

// smooth reports whether a case has results that a gradient rule may be checked on.
func (c *Case) smooth(dt dtype.DType) bool {
	want, _, err := c.Want()
	return err == nil && want[0].Type.DType.Size() >= dt.Size() && len(want[0].Data) > 0 && finite(want[0].Data) && len(c.In[0].Data) >= smallest
}

func finite(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// differences are the derivatives of Σ seed·result with respect to every element of the floating operands: central
// differences of the reference at two steps, extrapolated. Where the two disagree there is a kink, marked NaN.
func (g *GradCase) differences() [][]float64 {
	g.diffs.Do(func() {
		in := slices.Clone(g.In)
		for i, a := range g.In {
			if !a.Type.DType.IsFloat() {
				g.want = append(g.want, nil)
				continue
			}
			x := slices.Clone(a.Data)
			in[i] = ref.Array{Type: a.Type, Data: x}
			d := make([]float64, len(x))
			for j, v := range x {
				slope := func(h float64) float64 {
					x[j] = v + h
					hi := g.loss(in)
					x[j] = v - h
					lo := g.loss(in)
					x[j] = v
					return (hi - lo) / (2 * h)
				}
				near, far := slope(step), slope(2*step)
				if d[j] = (4*near - far) / 3; math.Abs(near-far) > 1e-4*(1+math.Abs(near)) || g.jumps(j) {
					d[j] = math.NaN()
				}
			}
			in[i] = a
			g.want = append(g.want, d)
		}
	})
	return g.want
}

// jumps reports an element at which the op is not smooth over the steps of a difference, though two may agree: the
// quotient of a remainder by a small number, or a derivative that bends.
func (g *GradCase) jumps(j int) bool {
	switch g.Op.Code.Row().Kink {
	case ir.AtQuotients:
		return math.Abs(g.In[1].Data[j]) < 0.2
	case ir.AtZero: // of the derivative, perhaps
		return math.Abs(g.In[0].Data[j]) < 4*step
	}
	return false
}

func (g *GradCase) loss(in []ref.Array) (sum float64) {
	out, err := ref.Eval(&g.Op, &g.Params, in)
	if err != nil {
		panic("conform: " + err.Error()) // the case itself has been evaluated
	}
	for i, v := range out[0].Data {
		sum += v * g.Seed.Data[i]
	}
	return sum
}

// use is the [autograd.Call] of a gradient case on a device.
type use struct {
	g       *GradCase
	in, out []ir.Value
	seed    ir.Value
}

func (u *use) Op() *ir.Op         { return &u.g.Op }
func (u *use) Params() *ir.Params { return &u.g.Params }
func (u *use) In(i int) ir.Value  { return u.in[i] }
func (u *use) Out(i int) ir.Value { return u.out[i] }
func (u *use) Want(i int) bool    { return u.g.Op.In(i).DType.IsFloat() }

func (u *use) Grad(i int) ir.Value {
	if i == 0 {
		return u.seed
	}
	return nil
}

// Grad runs the op and its gradient rule on the device and compares the gradients with differences of the reference.
// Worst.Result is the operand.
func (r *Runner) Grad(g *GradCase) Result {
	var got []ref.Array
	err := r.lowers.Try(func() {
		defer r.lowers.Release()
		u := &use{g: g, seed: r.lowers.Put(g.Seed.Type, g.Seed)}
		for i, a := range g.In {
			u.in = append(u.in, r.lowers.Put(g.Op.In(i), a))
		}
		u.out = r.lowers.Emit(g.Op.Code, g.Op.Attr, g.Params, slices.Clone(u.in)...)
		for i, v := range autograd.Of(g.Op.Code).Grad(ir.B{Builder: r.lowers}, u) {
			if v == nil { // no gradient counts as zeros
				v = ir.B{Builder: r.lowers}.Zeros(g.Op.In(i).As(dtype.F64))
			}
			got = append(got, r.lowers.Get(v))
		}
	})
	res := Result{Case: g.Case, Status: Failed, Err: err}
	if err != nil {
		return res
	}
	if r.bench.null {
		res.Status = Passed
		return res
	}
	if res.Worst = g.worst(got); res.Worst.excess() <= 1 {
		res.Status = Passed
	} else {
		res.Err = fmt.Errorf("of the gradients, as results: %s", res.Worst.String())
	}
	return res
}

// worst is the gradient that is farthest from its difference. What is allowed covers the truncation of the differences
// in f64, and rounding in the rule's steps in f32, relative to the largest gradient of the operand.
func (g *GradCase) worst(got []ref.Array) (worst Worst) {
	top := -1.0
	for i, want := range g.differences() {
		scale := 1.0
		for _, v := range want {
			if v == v {
				scale = max(scale, math.Abs(v))
			}
		}
		for j, v := range want {
			w := Worst{Result: i, Index: j, Got: got[i].Data[j], Want: v, Allowed: 1e-6 * scale}
			if g.Seed.Type.DType == dtype.F32 {
				w.Allowed = 2e-4 * scale
			}
			if e := w.excess(); v == v && e > top {
				top, worst = e, w
			}
		}
	}
	return worst
}

// Checked is the number of elements whose gradient has a difference to be compared with, and of all.
func (g *GradCase) Checked() (smooth, all int) {
	for _, d := range g.differences() {
		for _, v := range d {
			if all++; v == v {
				smooth++
			}
		}
	}
	return smooth, all
}
