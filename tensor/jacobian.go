package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

// derivation is one use of a function on leaves of its own: what torch.autograd.functional does. Nothing of it is recorded for
// the caller, whatever the modes of the values.
type derivation struct {
	op string
	x  []*Tensor // leaves
	y  *Tensor
}

// outcome is what a derivation leaves.
type outcome struct {
	Y *Tensor
	D []*Tensor
}

// VJP is f(x), and v times its derivative with respect to each operand: what Backward would leave with v as the gradient of
// the result. v has the result's shape; nil stands for 1 where that is one number.
func VJP(f func(x ...*Tensor) *Tensor, x []*Tensor, v *Tensor) (y *Tensor, products []*Tensor) {
	r := derive("VJP", f, x, func(d *derivation) []*Tensor { return d.grads(d.along(v), false, d.x...) })
	return r.Y, r.D
}

// JVP is f(x), and its derivative times v, which has a value of each operand's shape: how the result changes along v. It is
// the gradient of VJP, which is linear in its own v, and so takes operations that have second derivatives.
func JVP(f func(x ...*Tensor) *Tensor, x, v []*Tensor) (y, product *Tensor) {
	r := derive("JVP", f, x, func(d *derivation) []*Tensor {
		v = d.directions(v)
		turn := d.y.ZerosLike().In(d.x[0].env).RequireGrad()
		return d.grads(weigh(d.grads(d.y.Mul(turn).Sum(), true, d.x...), v), false, turn)
	})
	return r.Y, r.D[0]
}

// HVP is f(x), one number, and its second derivative times v, which has a value of each operand's shape.
func HVP(f func(x ...*Tensor) *Tensor, x, v []*Tensor) (y *Tensor, products []*Tensor) {
	r := derive("HVP", f, x, func(d *derivation) []*Tensor {
		d.number()
		return d.grads(weigh(d.grads(d.y, true, d.x...), d.directions(v)), false, d.x...)
	})
	return r.Y, r.D
}

// Jacobian has the derivative of each element of f(x) with respect to those of each operand: [result's shape, operand's shape].
// It takes a walk over the graph for each element of the result.
func Jacobian(f func(x ...*Tensor) *Tensor, x ...*Tensor) []*Tensor {
	return derive("Jacobian", f, x, func(d *derivation) []*Tensor { return d.rows(d.y) }).D
}

// Hessian has the second derivatives of f(x), one number: of operands i and j [shape of i, shape of j].
func Hessian(f func(x ...*Tensor) *Tensor, x ...*Tensor) [][]*Tensor {
	var h [][]*Tensor
	all := derive("Hessian", f, x, func(d *derivation) (list []*Tensor) {
		d.number()
		for _, g := range d.grads(d.y, true, d.x...) {
			list = append(list, d.rows(g)...)
		}
		return list
	}).D
	for row := range slices.Chunk(all, len(x)) {
		h = append(h, row)
	}
	return h
}

// derive runs f on leaves of x's values, and then what makes derivatives of it.
func derive(op string, f func(x ...*Tensor) *Tensor, x []*Tensor, then func(d *derivation) []*Tensor) outcome {
	if f == nil || len(x) == 0 {
		raise(op, "give a function and the values at which it is differentiated", "there is nothing to differentiate, or nothing by which")
	}
	for _, t := range x {
		t.given(op, "an operand")
	}
	return Do(joinAll(op, x), func(e *Env) outcome {
		d := &derivation{op: op, x: make([]*Tensor, len(x))}
		for i, t := range x {
			d.x[i] = t.In(e.Grad()).RequireGrad()
		}
		if d.y = f(d.x...); d.y == nil || !d.y.DType().IsFloat() {
			raise(op, "return a floating value", "the function's result has no derivative")
		}
		all := then(d)
		for i, t := range all {
			all[i] = t.In(e).Detach()
		}
		return outcome{Y: d.y.In(e).Detach(), D: all}
	})
}

// number refuses a result that is not one.
func (d *derivation) number() {
	if d.y.Size() != 1 {
		raise(d.op, "reduce it first: Mean() or Sum()", "the result's shape %v is not one number", d.y.Shape())
	}
}

// directions checks that there is one of each operand's shape.
func (d *derivation) directions(v []*Tensor) []*Tensor {
	if len(v) != len(d.x) {
		raise(d.op, "give one for each operand", "%d directions for %d operands", len(v), len(d.x))
	}
	list := make([]*Tensor, len(v))
	for i, t := range v {
		list[i] = d.direction(t, d.x[i])
	}
	return list
}

// direction is v as a constant of the dtype of what it belongs to.
func (d *derivation) direction(v, of *Tensor) *Tensor {
	v.given(d.op, "a direction")
	if !slices.Equal(v.Shape(), of.Shape()) {
		raise(d.op, "it has the shape of what it belongs to", "a direction of shape %v for %v", v.Shape(), of.Shape())
	}
	return v.In(d.x[0].env).Detach().Cast(of.DType())
}

// along is the result as one number, by the weights v; nil: as it is.
func (d *derivation) along(v *Tensor) *Tensor {
	if v == nil {
		d.number()
		return d.y
	}
	return d.y.Mul(d.direction(v, d.y)).Sum()
}

// weigh is Σ t·v over all.
func weigh(ts, vs []*Tensor) (sum *Tensor) {
	for i, t := range ts {
		if part := t.Mul(vs[i]).Sum(); sum == nil {
			sum = part
		} else {
			sum = sum.Add(part)
		}
	}
	return sum
}

// grads are the gradients of one number, zeros where it hangs on nothing.
func (d *derivation) grads(y *Tensor, record bool, x ...*Tensor) []*Tensor {
	if y.Recorded() {
		return gradOf(y, x, record)
	}
	zeros := make([]*Tensor, len(x))
	for i, t := range x {
		zeros[i] = t.env.full(t.typ.AsDense(), 0)
	}
	return zeros
}

// rows are the derivatives of each element of y with respect to each operand: [y's shape, operand's shape].
func (d *derivation) rows(y *Tensor) []*Tensor {
	list := make([][]*Tensor, len(d.x))
	flat := y.Reshape(-1)
	for i := range y.Size() {
		row := Do(d.x[0].env, func(e *Env) []*Tensor { return d.grads(flat.In(e).Select(0, i), false, d.x...) })
		for j, g := range row {
			list[j] = append(list[j], g)
		}
	}
	out := make([]*Tensor, len(d.x))
	for j, x := range d.x {
		shape := append(slices.Clone(y.Shape()), x.Shape()...)
		if len(list[j]) == 0 {
			out[j] = x.env.full(ir.Dense(x.DType(), shape...), 0)
			continue
		}
		out[j] = Stack(0, list[j]...).Reshape(shape...)
	}
	return out
}
