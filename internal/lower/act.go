package lower

import (
	"github.com/warpline-ml/warpline/internal/ir"
)

// linear multiplies in the operands' own precision, as an engine would, and widens for bias and activation.
func linear(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	x, w := in[0], in[1]
	y := b.Widen(b.One(ir.MatMul, ir.Attr{Precision: op.Attr.Precision}, ir.Params{}, b.Rows(x), b.Transpose(w)))
	if len(in) == 3 {
		y = b.Add(y, b.Widen(in[2]))
	}
	shape := append([]int(nil), op.In(0).Shape()...)
	shape[len(shape)-1] = op.In(1).Dim(0)
	shaped := func(v ir.Value) ir.Value { return b.Reshape(b.Cast(v, op.In(0).DType), shape...) }
	out := []ir.Value{shaped(apply(b, op.Attr.Act.Code(), y))}
	if op.Attr.Flag&ir.Before != 0 {
		out = append(out, shaped(y))
	}
	return out
}

// biasGrad sums what it gives, before that is rounded.
func biasGrad(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	d := b.Widen(in[0])
	if len(in) == 2 {
		d = apply(b, op.Attr.Act.GradCode(), b.Widen(in[1]), d)
	}
	dt := op.Attr.DType
	if dt == 0 {
		dt = op.In(0).DType
	}
	out := []ir.Value{b.Cast(b.Sum(d, 1<<0, false), dt)}
	if len(in) == 2 {
		out = append(out, b.Cast(d, op.In(0).DType))
	}
	return out
}

// steps are the lowerings of activations and their gradients that have one.
var steps = func() map[ir.Code]Rule {
	m := map[ir.Code]Rule{}
	for _, act := range ir.Acts() {
		for _, code := range []ir.Code{act.Code(), act.GradCode()} {
			if code.Row().Value != "" {
				m[code] = written(code)
			}
		}
	}
	return m
}()

// apply is an activation or its gradient, the first operand for none.
func apply(b ir.B, code ir.Code, in ...ir.Value) ir.Value {
	if code == ir.Invalid {
		return in[0]
	}
	rule := steps[code]
	if rule == nil {
		return b.Emit(code, ir.Attr{}, ir.Params{}, in...)[0]
	}
	types := make([]*ir.Type, len(in))
	for i, v := range in {
		types[i] = v.Type()
	}
	op := ir.New(code, ir.Attr{}, types...)
	return rule(b, &op, &ir.Params{}, in)[0]
}
