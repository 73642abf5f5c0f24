package tensor

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
)

// GradCheckConfig says how closely gradients must agree with finite differences. Zero fields take the defaults, which
// suit float64: Step 1e-6, RTol 1e-5, ATol 1e-7.
type GradCheckConfig struct {
	Step, RTol, ATol float64
	Second           bool // check second derivatives too
}

func (c GradCheckConfig) filled() GradCheckConfig {
	def := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Step, 1e-6)
	def(&c.RTol, 1e-5)
	def(&c.ATol, 1e-7)
	return c
}

// GradCheck compares the gradients of f with central differences at the float64 values in. f may return any shape; its
// results are summed with fixed weights. The error names the operand and element that differ most.
func GradCheck(f func(in []*Tensor) *Tensor, in []*Tensor, c GradCheckConfig) error {
	c = c.filled()
	for i, t := range in {
		if t.DType() != dtype.F64 {
			return fmt.Errorf("operand %d is %s: differences need float64", i, t.DType())
		}
	}
	if err := checkOnce(func(x []*Tensor) *Tensor { return weighted(f(x)) }, in, c); err != nil || !c.Second {
		return err
	}
	slope := func(x []*Tensor) *Tensor {
		sum := weighted(f(x)).FullLike(0)
		for _, g := range GradGraph(weighted(f(x)), x...) {
			sum = sum.Add(weighted(g))
		}
		return sum
	}
	if err := checkOnce(slope, in, c); err != nil {
		return fmt.Errorf("second derivative: %w", err)
	}
	return nil
}

// weighted sums t with weights that differ from element to element, so that errors do not cancel.
func weighted(t *Tensor) *Tensor {
	w := make([]float64, t.Size())
	for i := range w {
		w[i] = math.Cos(float64(i)*0.7) + 1.5
	}
	return t.Mul(From(t.env, w, t.Shape()...)).Sum()
}

func leaves(in []*Tensor) []*Tensor {
	out := make([]*Tensor, len(in))
	for i, t := range in {
		out[i] = t.RequireGrad()
	}
	return out
}

func checkOnce(f func([]*Tensor) *Tensor, in []*Tensor, c GradCheckConfig) error {
	x := leaves(in)
	y := f(x)
	if !y.Recorded() {
		return fmt.Errorf("the result depends on no operand")
	}
	for i, g := range Grad(y, x...) {
		got := g.Floats()
		base := in[i].Floats()
		for k := range base {
			want := difference(f, in, i, k, base, c.Step)
			if d := math.Abs(got[k] - want); !(d <= c.ATol+c.RTol*math.Abs(want)) {
				return fmt.Errorf("operand %d, element %d: gradient %.10g, finite difference %.10g", i, k, got[k], want)
			}
		}
	}
	return nil
}

// difference is the central difference of f along element k of operand i.
func difference(f func([]*Tensor) *Tensor, in []*Tensor, i, k int, base []float64, step float64) float64 {
	at := func(delta float64) float64 {
		moved := append([]float64(nil), base...)
		moved[k] += delta
		x := append([]*Tensor(nil), in...)
		x[i] = From(in[i].env, moved, in[i].Shape()...)
		return f(leaves(x)).Item()
	}
	h := step * max(1, math.Abs(base[k]))
	return (at(h) - at(-h)) / (2 * h)
}
